(** Steps of Kimi Delta Attention as matrices, and what they do to lengths. Definitions only.

    Keys and decays are rows; a transition is a K x K matrix that acts on the columns of the state. *)
From mathcomp Require Import all_ssreflect all_algebra.
From Attnproof.derivations Require Import matrices.
Set Implicit Arguments.
Unset Strict Implicit.
Import GRing.Theory Num.Theory.
Local Open Scope ring_scope.

(** (I - beta k^T k) Diag(alpha), and the product of the n transitions from number m on, later ones left. *)
Definition transition {R : comRingType} {K} (beta : R) (k alpha : 'rV[R]_K) : 'M[R]_K :=
  erase beta k *m diag_mx alpha.
Fixpoint transitions {R : comRingType} {K} (beta : nat -> R) (k alpha : nat -> 'rV[R]_K) (m n : nat) :
  'M[R]_K :=
  if n is p.+1 then transition (beta (m + p)%N) (k (m + p)%N) (alpha (m + p)%N) *m transitions beta k alpha m p
  else 1%:M.

(** One step of KDA on a K x V state. *)
Definition kda_step {R : comRingType} {K V} (beta : R) (k alpha : 'rV[R]_K) (v : 'rV[R]_V)
  (S : 'M[R]_(K, V)) : 'M[R]_(K, V) := write beta k v (diag_mx alpha *m S).

(** The squared length of a column, the squared Frobenius norm, and: no vector becomes longer. *)
Definition square {R : comRingType} {n} (x : 'cV[R]_n) : R := \sum_i x i 0 ^+ 2.
Definition frobenius {R : comRingType} {m n} (A : 'M[R]_(m, n)) : R := \sum_i \sum_j A i j ^+ 2.
Definition contraction {R : realFieldType} {m n} (A : 'M[R]_(m, n)) : Prop :=
  forall x : 'cV[R]_n, square (A *m x) <= square x.

(** A unit key, a strength in [0, 2], decays in [0, 1]. *)
Definition bounded_step {R : realFieldType} {K} (beta : R) (k alpha : 'rV[R]_K) : Prop :=
  sim k k = 1 /\ 0 <= beta <= 2%:R /\ forall c, 0 <= alpha 0 c <= 1.

(** I - lambda e_i e_j^T. *)
Definition shear {R : comRingType} {K} (i j : 'I_K) (lambda : R) : 'M[R]_K := 1%:M - lambda *: delta_mx i j.
