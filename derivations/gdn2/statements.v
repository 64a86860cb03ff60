(** What is proved about erasing along one direction what is read along another, to be read against the
    claim. *)
Require Import Reals.
From Attnproof.derivations Require Import vocabulary.
Open Scope R_scope.

(** (I - eta k j^T) x, and the number stated as its spectral norm. *)
Definition transition (K : nat) (eta : R) (k j x : nat -> R) (i : nat) : R := x i - eta * (k i * dot K j x).
Definition stated (K : nat) (eta : R) (k j : nat -> R) : R :=
  (eta + sqrt (eta ^ 2 - 4 * eta * dot K k j + 4)) / 2.

(** gdn2.norm: no vector is lengthened by more than the stated factor, some vector that is not 0 by just
    that, and the factor is above 1. *)
Definition norm : Prop :=
  forall K eta k j, 0 < eta -> dot K k k = 1 -> dot K j j = 1 -> (exists i, (i < K)%nat /\ k i <> j i) ->
    let N := stated K eta k j in
    let longer x := dot K (transition K eta k j x) (transition K eta k j x) in
    1 < N /\
    (forall x, longer x <= N ^ 2 * dot K x x) /\
    (exists x, 0 < dot K x x /\ longer x = N ^ 2 * dot K x x).
