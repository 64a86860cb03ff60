(** What is proved about softmax, to be read against the claims without reading a proof.

    A vector of n reals is a function of the indices 0 .. n-1; values at other indices do not matter.
    Coq's [ln] is 0 at arguments that are not positive, so [a i * ln (a i)] is 0 at [a i = 0],
    which is the usual 0 ln 0 = 0. *)
Require Import Reals.
From Attnproof.derivations Require Import vocabulary.
Open Scope R_scope.

(** The weights of softmax at temperature tau, and log-sum-exp. *)
Definition normaliser (n : nat) (tau : R) (s : nat -> R) : R := rsum n (fun j => exp (s j / tau)).
Definition weight (n : nat) (tau : R) (s : nat -> R) (i : nat) : R := exp (s i / tau) / normaliser n tau s.
Definition lse (n : nat) (tau : R) (s : nat -> R) : R := ln (normaliser n tau s).

(** Points of the simplex, boundary included. *)
Definition on_simplex (n : nat) (a : nat -> R) : Prop :=
  (forall i, (i < n)%nat -> 0 <= a i) /\ rsum n a = 1.

(** softmax.simplex: weights are positive, sum to 1, and every average lies in the hull of the values. *)
Definition simplex : Prop :=
  forall n tau s, (0 < n)%nat ->
    (forall i, (i < n)%nat -> 0 < weight n tau s i) /\
    rsum n (weight n tau s) = 1 /\
    forall v low high, (forall i, (i < n)%nat -> low <= v i <= high) ->
      low <= rsum n (fun i => weight n tau s i * v i) <= high.

(** softmax.entropic-ot: F(a) = - sum a s + tau sum a ln a exceeds its value - tau LSE at softmax by
    tau KL(a|p), which is never negative and vanishes at softmax alone. *)
Definition free_energy (n : nat) (tau : R) (s a : nat -> R) : R :=
  - rsum n (fun j => a j * s j) + tau * rsum n (fun j => a j * ln (a j)).
Definition divergence (n : nat) (a p : nat -> R) : R := rsum n (fun j => a j * (ln (a j) - ln (p j))).
Definition entropic_ot : Prop :=
  forall n tau s a, (0 < n)%nat -> 0 < tau -> on_simplex n a ->
    free_energy n tau s a + tau * lse n tau s = tau * divergence n a (weight n tau s) /\
    free_energy n tau s (weight n tau s) = - (tau * lse n tau s) /\
    0 <= divergence n a (weight n tau s) /\
    (divergence n a (weight n tau s) = 0 -> forall i, (i < n)%nat -> a i = weight n tau s i).

(** softmax.dilution: logits between m and M leave every weight between e^(-(M-m))/N and e^(M-m)/N. *)
Definition dilution : Prop :=
  forall n s m M, (0 < n)%nat -> (forall i, (i < n)%nat -> m <= s i <= M) ->
    forall j, (j < n)%nat ->
      exp (- (M - m)) / INR n <= weight n 1 s j <= exp (M - m) / INR n.
