(** Bounded logits dilute: no weight leaves [e^-(M-m)/N, e^(M-m)/N]. *)
Require Import Reals Lra Lia.
From Attnproof.derivations Require Import finite_sums.
From Attnproof.derivations.softmax Require Import statements weights.
Open Scope R_scope.

Lemma exp_le x y : x <= y -> exp x <= exp y.
Proof. intros [H|H]; [left; apply exp_increasing, H|right; f_equal; exact H]. Qed.

Theorem dilution_proof : dilution.
Proof.
  intros n s m M Hn H j Hj.
  assert (N : 0 < INR n) by (apply lt_0_INR; exact Hn).
  assert (low : INR n * exp m <= normaliser n 1 s).
  { rewrite <- rsum_const; apply rsum_le; intros i Hi; apply exp_le; specialize (H i Hi); lra. }
  assert (high : normaliser n 1 s <= INR n * exp M).
  { rewrite <- rsum_const; apply rsum_le; intros i Hi; apply exp_le; specialize (H i Hi); lra. }
  pose proof (normaliser_pos n 1 s Hn) as Z; pose proof (exp_pos m) as Em; pose proof (exp_pos M) as EM.
  assert (S : exp m <= exp (s j / 1) <= exp M)
    by (split; apply exp_le; specialize (H j Hj); lra).
  unfold weight; split.
  - replace (exp (- (M - m)) / INR n) with (exp m / (INR n * exp M)).
    + apply Rmult_le_compat; [lra|left; apply Rinv_0_lt_compat; nra|lra|apply Rinv_le_contravar; lra].
    + replace (- (M - m)) with (m + - M) by ring; rewrite exp_plus, exp_Ropp; field; lra.
  - replace (exp (M - m) / INR n) with (exp M / (INR n * exp m)).
    + apply Rmult_le_compat; [lra|left; apply Rinv_0_lt_compat; lra|lra|apply Rinv_le_contravar; [nra|lra]].
    + replace (M - m) with (M + - m) by ring; rewrite exp_plus, exp_Ropp; field; lra.
Qed.
