(** What is proved about the stability of the derived GDN form, to be read against the claim. *)
Require Import Reals QArith.
From Attnproof.derivations Require Import vocabulary.
Open Scope R_scope.

(** Token j has the key [k j]; [centred k n] is the newest of n keys minus the mean of all n. *)
Definition centred (k : nat -> nat -> R) (n i : nat) : R := k (pred n) i - mean n (fun j => k j i).
Definition squared (K : nat) (x : nat -> R) : R := dot K x x.

(** The transition x -> (1 - 1/t) x - (1/t) kappa (kappa.x) of the form, and its eigenvalue along kappa. *)
Definition step (K : nat) (t : R) (kappa x : nat -> R) (i : nat) : R :=
  (1 - / t) * x i - / t * (kappa i * dot K kappa x).
Definition eigenvalue (K : nat) (t : R) (kappa : nat -> R) : R := 1 - (1 + squared K kappa) / t.

(** The scalar history k = 0, 6, -6, 6, ..., v = 0, 1, -1, 1, ... in exact rationals: after n tokens, the
    state and the sums of keys and values so far. *)
Definition sign (j : nat) : Q := if Nat.eqb j 0 then 0%Q else if Nat.odd j then 1%Q else (-1)%Q.
Fixpoint history (n : nat) : Q * Q * Q :=
  match n with
  | O => (0, 0, 0)%Q
  | S m =>
      let '(state, keys, values) := history m in
      let t := inject_Z (Z.of_nat n) in
      let key := (6 * sign m)%Q in
      let kappa := (key - (keys + key) / t)%Q in
      let residual := if Nat.eqb m 0 then 0%Q else (sign m - values / inject_Z (Z.of_nat m))%Q in
      (Qred ((1 - (1 + kappa * kappa) / t) * state + kappa * residual / t),
       Qred (keys + key), Qred (values + sign m))%Q
  end.

(** gdn.form-unstable: eigenvalues along and across kappa; at most 1 in size iff |kappa|^2 <= 2t - 1; keys
    of squared length at most 45/16 never leave [-1, 1], and no larger bound will do; on bounded data the
    state goes from 0 below -1.4 million; once t >= 2 max |k|^2 the transition contracts again. *)
Definition form_unstable : Prop :=
  (forall K t kappa, 1 <= t ->
    (forall i, step K t kappa kappa i = eigenvalue K t kappa * kappa i) /\
    (forall x, dot K kappa x = 0 -> forall i, step K t kappa x i = (1 - / t) * x i) /\
    (-1 <= eigenvalue K t kappa <= 1 <-> squared K kappa <= 2 * t - 1)) /\
  (forall K k n, (0 < n)%nat -> (forall j, (j < n)%nat -> squared K (k j) <= 45 / 16) ->
    -1 <= eigenvalue K (INR n) (centred k n) <= 1) /\
  (forall B, 45 / 16 < B -> exists k : nat -> nat -> R,
    (forall j, squared 1 (k j) <= B) /\ eigenvalue 1 3 (centred k 3) < -1) /\
  (fst (fst (history 17)) <= -1400000)%Q /\
  (forall K k n B x, (0 < n)%nat -> (forall j, (j < n)%nat -> squared K (k j) <= B) -> 2 * B <= INR n ->
    squared K (step K (INR n) (centred k n) x) <= (1 - / INR n) ^ 2 * squared K x).
