(** What is proved about the chunkwise forms, to be read against the claims. Keys, values, queries and decays
    are rows, numbered from 0; the state is K x V and is read as q S. *)
From mathcomp Require Import all_ssreflect all_algebra.
From Attnproof.derivations Require Import matrices transitions.
Set Implicit Arguments.
Unset Strict Implicit.
Import GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Chunk.
Variables (R : comUnitRingType) (K V : nat).
Variables (beta : nat -> R) (q k alpha : nat -> 'rV[R]_K) (v : nat -> 'rV[R]_V).

(** The decays of tokens m, ..., t - 1, and a row x of token j as it stands when t tokens are done. *)
Definition decayed (m t : nat) (x : 'rV[R]_K) : 'rV[R]_K := \row_c ((\prod_(m <= i < t) alpha i 0 c) * x 0 c).

(** A chunk of C tokens from number m on: L below the diagonal, the scores on and below it, and what the rows
    of keys and queries become on their way from the state before the chunk and to the state after it. *)
Definition lower (m C : nat) : 'M[R]_C :=
  \matrix_(i, j) if (j < i)%N then beta (m + i)%N * sim (k (m + i)%N) (decayed (m + j).+1 (m + i).+1 (k (m + j)%N)) else 0.
Definition scores (m C : nat) : 'M[R]_C :=
  \matrix_(i, j) if (j <= i)%N then sim (q (m + i)%N) (decayed (m + j).+1 (m + i).+1 (k (m + j)%N)) else 0.
Definition from_start (x : nat -> 'rV[R]_K) (m C : nat) : 'M[R]_(C, K) :=
  \matrix_(i < C) decayed m (m + i).+1 (x (m + i)%N).
Definition to_end (m C : nat) : 'M[R]_(C, K) := \matrix_(j < C) decayed (m + j).+1 (m + C) (k (m + j)%N).
Definition strengths (m C : nat) : 'M[R]_C := diag_mx (\row_(i < C) beta (m + i)%N).
Definition values (m C : nat) : 'M[R]_(C, V) := \matrix_(i < C) v (m + i)%N.

(** What the tokens of the chunk write, its outputs, and the state after it. [erases] is false for linear
    attention, whose tokens write their values as they are. *)
Definition written (erases : bool) (m C : nat) (S : 'M[R]_(K, V)) : 'M[R]_(C, V) :=
  if erases then invmx (1%:M + lower m C) *m strengths m C *m (values m C - from_start k m C *m S)
  else values m C.
Definition outputs erases (m C : nat) (S : 'M[R]_(K, V)) : 'M[R]_(C, V) :=
  from_start q m C *m S + scores m C *m written erases m C S.
Definition after erases (m C : nat) (S : 'M[R]_(K, V)) : 'M[R]_(K, V) :=
  diag_mx (decayed m (m + C) (const_mx 1)) *m S + (to_end m C)^T *m written erases m C S.

(** All outputs and the last state, in chunks of the given sizes, from number m on. *)
Fixpoint chunkwise erases (m : nat) (S : 'M[R]_(K, V)) (sizes : seq nat) : seq 'rV[R]_V * 'M[R]_(K, V) :=
  if sizes is C :: rest then
    let later := chunkwise erases (m + C) (after erases m C S) rest in
    ([seq row i (outputs erases m C S) | i <- enum 'I_C] ++ later.1, later.2)
  else ([::], S).

(** The recurrence: one token, and the state when t tokens are done. *)
Definition step (erases : bool) (t : nat) (S : 'M[R]_(K, V)) : 'M[R]_(K, V) :=
  if erases then kda_step (beta t) (k t) (alpha t) (v t) S else diag_mx (alpha t) *m S + (k t)^T *m v t.
Fixpoint state erases (S : 'M[R]_(K, V)) (t : nat) : 'M[R]_(K, V) :=
  if t is p.+1 then step erases p (state erases S p) else S.
End Chunk.

(** chunk.equals-recurrent: for every list of chunk sizes, hence for chunks of C of which the last may be
    shorter, outputs and last state are those of the recurrence, from any state. GDN is KDA with one decay
    for all channels, the delta rule KDA with decays 1, and linear attention the form that does not erase. *)
Definition equals_recurrent : Prop :=
  (forall (R : comUnitRingType) K V (beta : nat -> R) (q k alpha : nat -> 'rV[R]_K) (v : nat -> 'rV[R]_V)
      erases S sizes,
    let T := sumn sizes in
    chunkwise beta q k alpha v erases 0 S sizes
      = ([seq q t *m state beta k alpha v erases S t.+1 | t <- iota 0 T], state beta k alpha v erases S T)) /\
  (forall C T, (0 < C)%N -> sumn (rcons (nseq (T %/ C) C) (T %% C))%N = T) /\
  (forall (R : comRingType) K V (beta a : R) (k : 'rV[R]_K) (v : 'rV[R]_V) (S : 'M[R]_(K, V)),
    kda_step beta k (const_mx a) v S = a *: (erase beta k *m S) + beta *: (k^T *m v) /\
    kda_step beta k (const_mx 1) v S = write beta k v S).

(** chunk.wy: the product of n erase factors, later ones left, in compact form; decays are 1, so that L has
    the entries beta_i k_i.k_j. *)
Definition wy : Prop :=
  forall (R : comUnitRingType) K (beta : nat -> R) (k : nat -> 'rV[R]_K) n,
    let keys : 'M[R]_(n, K) := \matrix_(i < n) k i in
    let B : 'M[R]_n := diag_mx (\row_(i < n) beta i) in
    let L : 'M[R]_n := \matrix_(i, j) if (j < i)%N then (B *m (keys *m keys^T)) i j else 0 in
    1%:M + L \in unitmx /\
    transitions beta k (fun=> const_mx 1) 0 n = 1%:M - keys^T *m (invmx (1%:M + L) *m B *m keys).

(** chunk.inverse-bounded: the entries of the inverse below its diagonal, and their size. *)
Definition inverse_bounded : Prop :=
  (forall (R : comUnitRingType) K (beta : nat -> R) (k alpha : nat -> 'rV[R]_K) C (i j : 'I_C), (j < i)%N ->
    invmx (1%:M + lower beta k alpha 0 C) i j
      = - beta i * (k i *m diag_mx (alpha i) *m transitions beta k alpha j.+1 (i - j.+1) *m (k j)^T) 0 0) /\
  (forall (R : realFieldType) K (beta : nat -> R) (k alpha : nat -> 'rV[R]_K) C (i j : 'I_C), (j < i)%N ->
    (forall t, (t < C)%N -> bounded_step (beta t) (k t) (alpha t)) ->
    `|invmx (1%:M + lower beta k alpha 0 C) i j| <= beta i).

(** The tokens j that token t sees in chunks of C, masked inside a chunk or not, and across chunks or not; how
    many of T tokens each sees: its output when all inputs are 1. *)
Definition sees (inside across : bool) (C t j : nat) : bool :=
  if (t %/ C == j %/ C)%N then inside ==> (j <= t)%N else across ==> (j %/ C < t %/ C)%N.
Definition seen (inside across : bool) (C T : nat) : seq nat :=
  [seq count (sees inside across C t) (iota 0 T) | t <- iota 0 T].

(** chunk.knob: causal linear attention without normaliser or decay, in chunks of any sizes: one chunk reads
    nothing from a state (scores first), chunks of one read all but their own token from it (state first).
    Masking inside and across is the causal mask, masking inside alone neither that nor none. *)
Definition knob : Prop :=
  (forall (R : comUnitRingType) K V beta (q k : nat -> 'rV[R]_K) (v : nat -> 'rV[R]_V) sizes,
    (chunkwise beta q k (fun=> const_mx 1) v false 0 0 sizes).1
      = [seq \sum_(j < t.+1) sim (q t) (k j) *: v j | t <- iota 0 (sumn sizes)]) /\
  (forall C t j, (0 < C)%N -> sees true true C t j = (j <= t)%N /\ sees false false C t j = true) /\
  seen true false 2 3 = [:: 2; 3; 3]%N /\ seen true true 2 3 = [:: 1; 2; 3]%N /\
  seen false false 2 3 = [:: 3; 3; 3]%N.
