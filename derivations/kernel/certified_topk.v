(** The dropped mass bounded from computed scores. *)
Require Import Reals Bool Lra Lia.
From Attnproof.derivations Require Import finite_sums.
From Attnproof.derivations.kernel Require Import statements.
Open Scope R_scope.

Lemma exp_monotone x y : x <= y -> exp x <= exp y.
Proof. intros [H | E]; [left; apply exp_increasing; exact H|rewrite E; right; reflexivity]. Qed.

Lemma within_both x e : Rabs x <= e -> - e <= x <= e.
Proof.
  intros H; pose proof (Rle_abs x); pose proof (Rle_abs (- x)) as N; rewrite Rabs_Ropp in N; lra.
Qed.

Lemma sum_where (keep : nat -> bool) set n f g : (forall j, (j < n)%nat -> f j <= g j) ->
  rsum n (fun j => if Bool.eqb (keep j) set then f j else 0) <=
  rsum n (fun j => if Bool.eqb (keep j) set then g j else 0).
Proof. intros H; apply rsum_le; intros j Hj; destruct (Bool.eqb (keep j) set); [apply H, Hj|lra]. Qed.

Lemma quotient_bound D W U L : 0 <= D -> D <= U -> 0 <= L -> L <= W -> 0 < U -> 0 < D + W -> D / (D + W) <= U / (U + L).
Proof.
  intros; apply (Rmult_le_reg_r ((D + W) * (U + L))); [apply Rmult_lt_0_compat; lra|].
  replace (D / (D + W) * ((D + W) * (U + L))) with (D * (U + L)) by (field; lra).
  replace (U / (U + L) * ((D + W) * (U + L))) with (U * (D + W)) by (field; lra); nra.
Qed.

Theorem certified_topk_proof : certified_topk.
Proof.
  split; [|split].
  - intros n keep s z e M U L Hn H sum HU HL HU0 HL0.
    set (D := sum false (fun j => exp (s j - M))); set (W := sum true (fun j => exp (s j - M))).
    set (Z := rsum n (fun j => exp (s j))) in *.
    assert (HZ : 0 < Z) by (apply rsum_pos; [exact Hn|intros; apply exp_pos]).
    assert (E : D + W = exp (- M) * Z).
    { unfold D, W, sum, Z; rewrite <- rsum_plus, <- rsum_scal; apply rsum_ext; intros j _.
      rewrite <- exp_plus; replace (- M + s j) with (s j - M) by ring; destruct (keep j); simpl; ring. }
    assert (F : D = exp (- M) * (Z * sum false (fun j => exp (s j) / Z))).
    { unfold D, sum; rewrite <- !rsum_scal; apply rsum_ext; intros j _; destruct (Bool.eqb (keep j) false); [|ring].
      unfold Rminus; rewrite exp_plus; field; lra. }
    assert (X : 0 < exp (- M)) by apply exp_pos.
    replace (sum false (fun j => exp (s j) / Z)) with (D / (D + W)) by (rewrite E, F; field; lra).
    apply quotient_bound; try assumption.
    + unfold D, sum; apply rsum_nonneg; intros j _; destruct (Bool.eqb (keep j) false); [left; apply exp_pos|lra].
    + eapply Rle_trans; [|exact HU]; apply sum_where; intros j Hj; apply exp_monotone.
      pose proof (within_both _ _ (H j Hj)); lra.
    + eapply Rle_trans; [exact HL|]; apply sum_where; intros j Hj; apply exp_monotone.
      pose proof (within_both _ _ (H j Hj)); lra.
    + rewrite E; apply Rmult_lt_0_compat; assumption.
  - intros gamma exact computed Hg Hx; split; intros H.
    + apply (Rmult_le_compat_r (1 + 2 * gamma)) in H; [|lra]; eapply Rle_trans; [|exact H].
      assert (0 <= gamma * (1 - 2 * gamma) * exact) by (apply Rmult_le_pos; [apply Rmult_le_pos|]; lra); lra.
    + apply (Rmult_le_compat_r (1 - 2 * gamma)) in H; [|lra]; eapply Rle_trans; [exact H|].
      assert (0 <= gamma * (1 + 2 * gamma) * exact) by (apply Rmult_le_pos; [apply Rmult_le_pos|]; lra); lra.
  - intros u U L x y z Hu HU HL Hx Hx0 Hy Hy0 Hz; eapply Rle_trans; [|exact Hz].
    assert (Q : 0 <= L / U) by (apply Rmult_le_pos; [assumption|left; apply Rinv_0_lt_compat; assumption]).
    replace (U / (U + L)) with (1 / (1 + L / U)) by (field; lra); set (q := L / U) in *.
    assert (Y : y <= (1 + q * (1 + u)) * (1 + u)) by (eapply Rle_trans; [exact Hy|]; apply Rmult_le_compat_r; lra).
    apply (Rmult_le_reg_r (y * (1 + q))); [apply Rmult_lt_0_compat; lra|].
    replace (1 / (1 + q) * (y * (1 + q))) with y by (field; lra).
    replace ((1 + 16 * u) / y * (1 - u) * (y * (1 + q))) with ((1 + 16 * u) * (1 - u) * (1 + q)) by (field; lra).
    eapply Rle_trans; [exact Y|].
    assert (0 <= u * (14 - 16 * u)) by (apply Rmult_le_pos; lra).
    assert (0 <= q * (u * (13 - 17 * u))) by (apply Rmult_le_pos; [|apply Rmult_le_pos]; lra).
    lra.
Qed.
