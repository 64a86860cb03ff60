(** What is proved about softmax, to be read against the claims without reading a proof.

    A vector of n reals is a function of the indices 0 .. n-1; values at other indices do not matter.
    Coq's [ln] is 0 at arguments that are not positive, so [a i * ln (a i)] is 0 at [a i = 0],
    which is the usual 0 ln 0 = 0. *)
Require Import Reals.
From Coquelicot Require Import Coquelicot.
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

(** softmax.lse-gradient, with phi = tau LSE: gradient p, Hessian (diag p - p p^T)/tau, positive
    semidefinite and zero on constant vectors only; phi and tau sum a ln a are conjugate on the simplex;
    the Bregman divergence of phi is tau KL. [changed s j x] is s with entry j replaced by x. *)
Definition changed (s : nat -> R) (j : nat) (x : R) (i : nat) : R := if Nat.eq_dec i j then x else s i.
Definition delta (i j : nat) : R := if Nat.eq_dec i j then 1 else 0.
Definition hessian (n : nat) (tau : R) (s : nat -> R) (i j : nat) : R :=
  / tau * (weight n tau s i * (delta i j - weight n tau s j)).
Definition lse_gradient : Prop :=
  forall n tau s, (0 < n)%nat -> 0 < tau ->
    (forall j, (j < n)%nat ->
      is_derive (fun x => tau * lse n tau (changed s j x)) (s j) (weight n tau s j)) /\
    (forall i j, (i < n)%nat -> (j < n)%nat ->
      is_derive (fun x => weight n tau (changed s j x) i) (s j) (hessian n tau s i j)) /\
    (forall x, 0 <= rsum n (fun i => rsum n (fun j => x i * hessian n tau s i j * x j))) /\
    (forall x, rsum n (fun i => rsum n (fun j => x i * hessian n tau s i j * x j)) = 0 <->
      exists c, forall i, (i < n)%nat -> x i = c) /\
    (forall a, on_simplex n a ->
      rsum n (fun j => a j * s j) - tau * rsum n (fun j => a j * ln (a j)) <= tau * lse n tau s) /\
    rsum n (fun j => weight n tau s j * s j)
      - tau * rsum n (fun j => weight n tau s j * ln (weight n tau s j)) = tau * lse n tau s /\
    (forall t, tau * lse n tau t - tau * lse n tau s - rsum n (fun j => weight n tau s j * (t j - s j))
      = tau * divergence n (weight n tau s) (weight n tau t)).

(** softmax.backprop-baseline: for a loss with the gradient g in the weights, the gradient in the scores
    is the advantage over the mean, and sums to 0. The loss is taken to first order, sum g_i p_i. *)
Definition backprop_baseline : Prop :=
  forall n tau s g, (0 < n)%nat -> 0 < tau ->
    let p := weight n tau s in
    let mean := rsum n (fun i => p i * g i) in
    (forall j, (j < n)%nat ->
      is_derive (fun x => rsum n (fun i => g i * weight n tau (changed s j x) i)) (s j)
        (p j / tau * (g j - mean))) /\
    rsum n (fun j => p j / tau * (g j - mean)) = 0.

(** softmax.sparsemax and softmax.entmax: a threshold makes the weights sum to 1; they exceed every other
    point of the simplex in value, by at least half the squared distance for sparsemax, and no other point
    ties. b^(3/2) is written sqrt(b)^3, and the Tsallis entropy of order 3/2 is 4/3 (1 - sum b^(3/2)). *)
Definition clipped (s : nat -> R) (theta : R) (j : nat) : R := Rmax 0 (s j - theta).
Definition sparsemax : Prop :=
  forall n s, (0 < n)%nat ->
    let cost a := - rsum n (fun j => a j * s j) + / 2 * rsum n (fun j => a j ^ 2) in
    (exists theta, rsum n (clipped s theta) = 1) /\
    forall theta b, rsum n (clipped s theta) = 1 -> on_simplex n b ->
      on_simplex n (clipped s theta) /\
      cost (clipped s theta) + / 2 * rsum n (fun j => (b j - clipped s theta j) ^ 2) <= cost b /\
      (cost b <= cost (clipped s theta) -> forall j, (j < n)%nat -> b j = clipped s theta j).
Definition entmax : Prop :=
  forall n s, (0 < n)%nat ->
    let z j := s j / 2 in
    let a theta j := clipped z theta j ^ 2 in
    let cost b := - rsum n (fun j => b j * s j) + 4 / 3 * (rsum n (fun j => sqrt (b j) ^ 3) - 1) in
    (exists theta, rsum n (a theta) = 1) /\
    forall theta b, rsum n (a theta) = 1 -> on_simplex n b ->
      on_simplex n (a theta) /\ cost (a theta) <= cost b /\
      (cost b <= cost (a theta) -> forall j, (j < n)%nat -> b j = a theta j).
