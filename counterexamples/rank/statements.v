(** What is proved about the ranks of attention matrices, to be read against the claims. *)
From mathcomp Require Import all_ssreflect all_algebra.
Set Implicit Arguments.
Unset Strict Implicit.
Import GRing.Theory.
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
