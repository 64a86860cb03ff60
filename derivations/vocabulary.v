(** Words that the statements of several topics use. Definitions only: a change here changes statements. *)
Require Import Reals.
Open Scope R_scope.

(** The finite sum f 0 + ... + f (n-1). *)
Fixpoint rsum (n : nat) (f : nat -> R) : R :=
  match n with O => 0 | S m => rsum m f + f m end.
