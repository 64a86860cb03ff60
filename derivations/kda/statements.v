(** What is proved about the steps of KDA, to be read against the claims. Keys, decays and queries are rows;
    the state is K x V and is read as q S. *)
From mathcomp Require Import all_ssreflect all_algebra.
From Attnproof.derivations Require Import matrices transitions.
Set Implicit Arguments.
Unset Strict Implicit.
Import GRing.Theory Num.Theory.
Local Open Scope ring_scope.

(** kda.transition-spectrum: the eigenvalues of the erase factor with their multiplicities, as its
    characteristic polynomial, and eigenvectors: k, and all that is across it, which with k spans everything;
    when it is a contraction, and with decays in [0, 1]; when a transition is singular. *)
Definition transition_spectrum : Prop :=
  (forall (F : fieldType) K (beta : F) (k : 'rV[F]_K.+1), sim k k = 1 ->
    char_poly (erase beta k) = ('X - 1%:P) ^+ K * ('X - (1 - beta)%:P) /\
    erase beta k *m k^T = (1 - beta) *: k^T /\
    (forall x : 'cV[F]_K.+1, k *m x = 0 -> erase beta k *m x = x) /\
    (forall x : 'cV[F]_K.+1, exists (c : F) (y : 'cV[F]_K.+1), x = c *: k^T + y /\ k *m y = 0) /\
    (forall alpha, transition beta k alpha \notin unitmx <-> beta = 1 \/ exists c, alpha 0 c = 0)) /\
  (forall (R : realFieldType) K (beta : R) (k : 'rV[R]_K), sim k k = 1 ->
    (contraction (erase beta k) <-> 0 <= beta <= 2%:R) /\
    (0 <= beta <= 2%:R -> forall alpha : 'rV[R]_K, (forall c, 0 <= alpha 0 c <= 1) ->
      contraction (transition beta k alpha))).

(** The state after n tokens from zero. *)
Fixpoint state (R : comRingType) K V (beta : nat -> R) (k alpha : nat -> 'rV[R]_K) (v : nat -> 'rV[R]_V)
  (n : nat) : 'M[R]_(K, V) :=
  if n is m.+1 then kda_step (beta m) (k m) (alpha m) (v m) (state beta k alpha v m) else 0.

(** kda.ceiling: the output is a sum over tokens, linear in the values; the squared length of what token j
    contributes is at most |q|^2 (product of the caps after j)^2 beta_j^2 |k_j|^2 |v_j|^2. *)
Definition ceiling : Prop :=
  (forall (R : comRingType) K V beta k alpha v n (q : 'rV[R]_K),
    q *m state beta k alpha v n
      = \sum_(j < n) (q *m transitions beta k alpha j.+1 (n - j.+1) *m (beta j *: (k j)^T)) 0 0 *: v j
      :> 'rV[R]_V) /\
  (forall (R : realFieldType) K V (beta : nat -> R) (k alpha : nat -> 'rV[R]_K) (v : nat -> 'rV[R]_V)
      (cap : nat -> R) n (q : 'rV[R]_K) j,
    (forall t, (j < t < n)%N -> sim (k t) (k t) = 1 /\ 0 <= beta t <= 2%:R /\
      forall c, 0 <= alpha t 0 c <= cap t) -> (j < n)%N ->
    let part := (q *m transitions beta k alpha j.+1 (n - j.+1) *m (beta j *: (k j)^T)) 0 0 *: v j in
    sim part part <= sim q q * (\prod_(j.+1 <= t < n) cap t) ^+ 2 * beta j ^+ 2 * sim (k j) (k j)
                     * sim (v j) (v j)).

(** kda.neumann-exact-unstable. Matrices have n + 1 rows; 2^r of them is the case n + 1 = 2^r. The lower
    triangular matrix of equal unit keys; its powers, its inverse and two binomials. *)
Definition strictly_lower (R : ringType) n (N : 'M[R]_n.+1) : Prop := forall i j : 'I_n.+1, (i <= j)%N -> N i j = 0.
Definition equal_keys (R : ringType) n (beta : R) : 'M[R]_n.+1 := \matrix_(i, j) if (j < i)%N then beta else 0.
Definition neumann_exact_unstable : Prop :=
  (forall (F : fieldType) n r (N : 'M[F]_n.+1), strictly_lower N -> (n.+1 <= 2 ^ r.+1)%N ->
    1 + N \in unitmx /\ invmx (1 + N) = (1 - N) * \prod_(1 <= s < r.+1) (1 + N ^+ (2 ^ s))) /\
  (forall (F : fieldType) n (beta : F) (i j : 'I_n.+1),
    (forall m, (equal_keys n beta ^+ m.+1) i j
      = if (j < i)%N then beta ^+ m.+1 * 'C(i - j - 1, m)%:R else 0) /\
    invmx (1 + equal_keys n beta) i j
      = if (j < i)%N then - (beta * (1 - beta) ^+ (i - j - 1)) else (i == j)%:R) /\
  (forall (R : realFieldType) (beta : R) d, 0 <= beta <= 2%:R -> `|- (beta * (1 - beta) ^+ d)| <= beta) /\
  'C(14, 7) = 3432%N /\ (10%:R ^+ 17 < 'C(62, 31)%:R :> rat) /\
  (forall (R : realFieldType) (beta largest : R) (b exact computed rounding : nat -> R), 0 <= beta <= 2%:R ->
    (forall t, exact t = b t - beta * \sum_(s < t) exact s) ->
    (forall t, computed t = b t - beta * (\sum_(s < t) computed s) + rounding t) ->
    (forall t, `|rounding t| <= largest) ->
    forall t, `|computed t - exact t| <= (1 + beta * t%:R) * largest).
