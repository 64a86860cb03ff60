(** Words that the statements of several topics use. Definitions only: a change here changes statements. *)
Require Import Reals.
Open Scope R_scope.

(** The finite sum f 0 + ... + f (n-1). *)
Fixpoint rsum (n : nat) (f : nat -> R) : R :=
  match n with O => 0 | S m => rsum m f + f m end.

(** The finite product f 0 * ... * f (n-1). *)
Fixpoint rprod (n : nat) (f : nat -> R) : R :=
  match n with O => 1 | S m => rprod m f * f m end.

(** The inner product of two vectors of width K; [dot K x x] is the squared Euclidean length. *)
Definition dot (K : nat) (x y : nat -> R) : R := rsum K (fun i => x i * y i).

(** The mean of the first n numbers. *)
Definition mean (n : nat) (f : nat -> R) : R := rsum n f / INR n.
