(** What is proved about the ranks of attention matrices, to be read against the claims. *)
Require Import Reals.
From Attnproof.derivations Require Import vocabulary.

(** rank.exponential-full: for distinct reals q_i and distinct reals k_j, n of each, the matrix e^(q_i k_j)
    sends no column but 0 to 0: it has rank n. For k_j = j its entry (i, j) is the power j of e^(q_i). *)
Definition distinct (n : nat) (x : nat -> R) : Prop :=
  forall i j, (i < n)%nat -> (j < n)%nat -> i <> j -> x i <> x j.
Definition exponential_full : Prop :=
  (forall n q k c, distinct n q -> distinct n k ->
    (forall i, (i < n)%nat -> rsum n (fun j => c j * exp (q i * k j))%R = 0%R) ->
    forall j, (j < n)%nat -> c j = 0%R) /\
  (forall x j, exp (x * INR j) = (exp x ^ j))%R.

(** From here on over any field, with matrices of mathcomp. *)
From mathcomp Require Import all_ssreflect all_algebra.
From Attnproof.derivations Require Import matrices transitions.
Set Implicit Arguments.
Unset Strict Implicit.
Import GRing.Theory Num.Theory.
Local Open Scope ring_scope.

(** rank.finite-feature: m features make a matrix of rank at most m; attained by the identity. *)
Definition finite_feature : Prop :=
  forall (F : fieldType) n m n' (Phi : 'M[F]_(n, m)) (Psi : 'M[F]_(m, n')),
    (\rank (Phi *m Psi) <= m)%N /\ \rank (1%:M *m 1%:M : 'M[F]_m) = m.

(** rank.softmax-same: dividing each row by a number that is not 0 keeps kernel and rank. *)
Definition softmax_same : Prop :=
  forall (F : fieldType) n n' (Z : 'I_n -> F) (E : 'M[F]_(n, n')), (forall i, Z i != 0) ->
    let P := \matrix_(i, j) (E i j / Z i) in
    \rank P = \rank E /\ forall x : 'cV[F]_n', P *m x = 0 <-> E *m x = 0.

(** rank.gap: A is an invertible block, m + 1 rows and columns, of P; B has rank at most m. Some x that is not
    0 is stretched by P - B by at least 1 / |A^-1|, in Frobenius norm; that norm of P - B is no less. With
    values I the outputs are the matrices themselves. *)
Definition gap : Prop :=
  forall (R : realFieldType) n n' m (P B : 'M[R]_(n, n')) (rows : 'I_m.+1 -> 'I_n) (columns : 'I_m.+1 -> 'I_n'),
    injective rows -> injective columns -> (\rank B <= m)%N ->
    let A := mxsub rows columns P in
    A \in unitmx ->
    (exists2 x : 'cV[R]_n', x != 0 & square x <= frobenius (invmx A) * square ((P - B) *m x)) /\
    1 <= frobenius (invmx A) * frobenius (P - B) /\
    frobenius (P *m 1%:M - B *m 1%:M) = frobenius (P - B).
