(** The error of aligned, truncated sums. *)
Require Import Reals Lra Lia ZArith.
From Flocq Require Import Core Relative.
From Attnproof.derivations Require Import finite_sums.
From Attnproof.derivations.kernel Require Import statements.
Open Scope R_scope.

Lemma truncated_near y : Rabs (IZR (Ztrunc y) - y) <= 1.
Proof.
  unfold Ztrunc; destruct (Rlt_bool_spec y 0) as [H|H]; apply Rabs_le.
  - unfold Zceil; rewrite opp_IZR; pose proof (Zfloor_lb (- y)); pose proof (Zfloor_ub (- y)); lra.
  - pose proof (Zfloor_lb y); pose proof (Zfloor_ub y); lra.
Qed.

Lemma cut_near g x : 0 < g -> Rabs (cut g x - x) <= g.
Proof.
  intros Hg; replace (cut g x - x) with (g * (IZR (Ztrunc (x / g)) - x / g)) by (unfold cut; field; lra).
  rewrite Rabs_mult, (Rabs_pos_eq g) by lra; pose proof (truncated_near (x / g)); nra.
Qed.

Lemma sum_of_cuts g n x : 0 < g -> Rabs (rsum n (fun i => cut g (x i)) - rsum n x) <= INR n * g.
Proof.
  intros Hg; induction n as [|n IH]; [simpl; rewrite Rminus_0_r, Rabs_R0; lra|].
  cbn [rsum]; rewrite S_INR; pose proof (cut_near g (x n) Hg).
  replace (_ - _) with ((rsum n (fun i => cut g (x i)) - rsum n x) + (cut g (x n) - x n)) by ring.
  eapply Rle_trans; [apply Rabs_triang|lra].
Qed.

Lemma multiple g n x : exists m, rsum n (fun i => cut g (x i)) = IZR m * g.
Proof.
  induction n as [|n [m E]]; [exists 0%Z; simpl; ring|].
  exists (m + Ztrunc (x n / g))%Z; cbn [rsum]; rewrite E, plus_IZR; unfold cut; ring.
Qed.

(** A multiple of a grid no finer than the smallest number loses at most its last bits. *)
Lemma result_near emin p e m : (0 < p)%Z -> (emin <= e)%Z -> let A := IZR m * bpow radix2 e in
  Rabs (round radix2 (FLT_exp emin p) Ztrunc A - A) <= bpow radix2 (1 - p) * Rabs A.
Proof.
  intros Hp He A; destruct (Rle_or_lt (bpow radix2 (emin + p - 1)) (Rabs A)) as [H|H].
  - apply Rlt_le; replace (1 - p)%Z with (- p + 1)%Z by lia.
    apply relative_error_FLT; [assumption|exact _|assumption].
  - rewrite round_generic; [|exact _|].
    + rewrite Rminus_eq_0, Rabs_R0; apply Rmult_le_pos; [apply bpow_ge_0|apply Rabs_pos].
    + apply generic_format_FLT; exists (Float radix2 m e); [reflexivity| |assumption].
      cbn [Fnum]; apply lt_IZR; rewrite abs_IZR, IZR_Zpower by lia.
      apply (Rmult_lt_reg_r (bpow radix2 e)); [apply bpow_gt_0|].
      rewrite <- bpow_plus; unfold A in H; rewrite Rabs_mult, (Rabs_pos_eq (bpow _ _)) in H by apply bpow_ge_0.
      eapply Rlt_le_trans; [exact H|apply bpow_le; lia].
Qed.

Theorem tensor_core_sum_proof : tensor_core_sum.
Proof.
  split.
  - intros emin p E f n x M Hp He HM result lost.
    set (g := bpow radix2 (E - f)) in *; assert (Hg : 0 < g) by apply bpow_gt_0.
    set (A := rsum n (fun i => cut g (x i))) in *; set (S := rsum n x).
    pose proof (sum_of_cuts g n x Hg) as C; fold A S in C.
    assert (R : Rabs (result - A) <= bpow radix2 (1 - p) * Rabs A).
    { destruct (multiple g n x) as [m Em]; fold A in Em; unfold result; rewrite Em; apply result_near; assumption. }
    assert (G : INR n * g <= lost).
    { unfold lost, g; apply Rmult_le_compat_l; [apply pos_INR|].
      replace (E - f)%Z with (- f + E)%Z by lia; rewrite bpow_plus.
      apply Rmult_le_compat_l; [apply bpow_ge_0|assumption]. }
    assert (B : Rabs A <= Rabs S + lost).
    { replace A with (S + (A - S)) by ring; eapply Rle_trans; [apply Rabs_triang|lra]. }
    assert (P : 0 <= bpow radix2 (1 - p)) by apply bpow_ge_0.
    replace (result - S) with ((result - A) + (A - S)) by ring.
    eapply Rle_trans; [apply Rabs_triang|]; nra.
  - intros T D P d; induction T as [|T IH]; intros H; [simpl; ring|].
    cbn [rsum]; rewrite (H T) by lia; rewrite <- IH by (intros t Ht; apply H; lia); ring.
Qed.
