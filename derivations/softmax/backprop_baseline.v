(** Backpropagation through softmax subtracts the mean of the incoming gradient. *)
Require Import Reals Lra Lia.
From Coquelicot Require Import Coquelicot.
From Attnproof.derivations Require Import finite_sums.
From Attnproof.derivations.softmax Require Import statements weights derivatives.
Open Scope R_scope.

Theorem backprop_baseline_proof : backprop_baseline.
Proof.
  intros n tau s g Hn Ht p mean; split.
  - intros j Hj.
    replace (p j / tau * (g j - mean)) with (rsum n (fun i => g i * hessian n tau s i j)).
    + apply rsum_derive; intros i _.
      apply (is_derive_scal (fun x => weight n tau (changed s j x) i)); apply weight_derive; assumption.
    + rewrite (rsum_ext n _ (fun i => / tau * (g i * p i * delta i j - p j * (p i * g i)))).
      * rewrite rsum_scal, rsum_minus, rsum_scal, rsum_delta by exact Hj; fold mean; field; lra.
      * intros i _; unfold hessian; fold p; ring.
  - rewrite (rsum_ext n _ (fun j => / tau * (p j * g j - mean * p j))).
    + rewrite rsum_scal, rsum_minus, rsum_scal; unfold p at 2; rewrite weight_sum by exact Hn.
      fold mean; ring.
    + intros j _; field; lra.
Qed.
