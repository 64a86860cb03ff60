(** Softmax weights lie inside the simplex, and averages stay in the hull of the values. *)
Require Import Reals Lra Lia.
From Attnproof.derivations Require Import finite_sums.
From Attnproof.derivations.softmax Require Import statements weights.
Open Scope R_scope.

Theorem simplex_proof : simplex.
Proof.
  intros n tau s Hn; split; [|split].
  - intros i _; apply weight_pos, Hn.
  - apply weight_sum, Hn.
  - intros v low high H.
    assert (bound : forall c, rsum n (fun i => weight n tau s i * c) = c).
    { intros c; rewrite <- rsum_mult_r, weight_sum by exact Hn; ring. }
    split; [rewrite <- (bound low)|rewrite <- (bound high)]; apply rsum_le; intros i Hi;
      apply Rmult_le_compat_l; try (left; apply weight_pos, Hn); apply H, Hi.
Qed.
