(** Closed forms: T steps at once, the size of exact states, and spread against K u. *)
Require Import Reals Lra Lia.
From Attnproof.derivations.kernel Require Import statements sums.
Open Scope R_scope.

(** With factors 1 + x per step, T steps add up to less than T / (1 - T x). *)
Lemma steps_add_up x T : 0 <= x -> INR (S T) * x < 1 ->
  (1 + x) * (INR T / (1 - INR T * x)) + 1 <= INR (S T) / (1 - INR (S T) * x).
Proof.
  intros X H; rewrite S_INR in *; pose proof (pos_INR T) as N; set (n := INR T) in *.
  assert (0 <= n * x) by (apply Rmult_le_pos; assumption).
  replace ((1 + x) * (n / (1 - n * x)) + 1) with ((n + 1) / (1 - n * x)) by (field; lra).
  apply Rmult_le_compat_l; [lra|apply Rinv_le_contravar; lra].
Qed.

Lemma linear_in_steps s room T kappa b m v w :
  0 <= s -> 0 <= room -> 0 <= kappa -> 0 <= b -> 0 <= m -> 0 <= v ->
  (forall t, (t < T)%nat -> w t <= v) -> INR T * s * (1 + b * kappa ^ 2) < 1 ->
  error_bound s room (fun _ => 1) (fun _ => kappa) (fun _ => b) (fun _ => 1) (fun _ => m) w 0 T
    <= error_after s room T kappa b m v.
Proof.
  intros s0 P HK B M V0; unfold error_after; set (c := 1 + b * kappa ^ 2); set (L := c * (m + room) + b * kappa * v).
  assert (c1 : 1 <= c) by (unfold c; pose proof (Rmult_le_pos _ _ B (pow2_ge_0 kappa)); lra).
  induction T as [|T IH]; intros V H; [cbn; unfold Rdiv; rewrite !Rmult_0_l; lra|].
  assert (x0 : 0 <= s * c) by (apply Rmult_le_pos; lra).
  assert (smaller : INR T * s * c < 1) by (rewrite S_INR in H; lra).
  specialize (IH (fun t Lt => V t (Nat.lt_lt_succ_r _ _ Lt)) smaller); pose proof (V T (Nat.lt_succ_diag_r T)) as v0.
  cbn [error_bound]; set (e := error_bound s room _ _ _ _ _ w 0 T) in *.
  pose proof (Rmult_le_pos _ _ B HK) as bk.
  apply Rle_trans with ((1 + s * c) * e + s * L).
  { assert (b * kappa * w T <= b * kappa * v) by (apply Rmult_le_compat_l; assumption).
    assert (s * (b * kappa * w T) <= s * (b * kappa * v)) by (apply Rmult_le_compat_l; assumption).
    unfold fresh, L, c; lra. }
  assert (L0 : 0 <= s * L).
  { apply Rmult_le_pos; [exact s0|unfold L; apply Rplus_le_le_0_compat; apply Rmult_le_pos; lra]. }
  assert (H' : INR (S T) * (s * c) < 1) by lra.
  pose proof (Rmult_le_compat_r (s * L) _ _ L0 (steps_add_up (s * c) T x0 H')) as add.
  assert (split : forall n, n * s * L / (1 - n * s * c) = n / (1 - n * (s * c)) * (s * L))
    by (intros n; rewrite (Rmult_assoc n s c); unfold Rdiv; ring).
  rewrite split in IH |- *; set (q := INR T / (1 - INR T * (s * c))) in *.
  assert ((1 + s * c) * e <= (1 + s * c) * (q * (s * L))) by (apply Rmult_le_compat_l; lra); lra.
Qed.

Lemma column_size K a k beta v s kappa : (forall i, (i < K)%nat -> 0 <= a i <= 1) -> 0 <= beta ->
  beta * dot K k k <= 2 -> norm2 K k <= kappa -> 0 <= kappa ->
  norm2 K (exact_step K a k beta v s) <= norm2 K s + kappa * beta * Rabs v.
Proof.
  intros A B G Q HK; destruct K as [|K]; [unfold norm2; cbn; rewrite sqrt_0|].
  { pose proof (Rmult_le_pos _ _ (Rmult_le_pos _ _ HK B) (Rabs_pos v)); lra. }
  set (x := fun i => a i * s i).
  rewrite (norm2_ext _ _ (fun i => (x i + beta * k i * - dot (S K) k x) + (beta * v) * k i))
    by (intros; unfold exact_step, x; ring).
  eapply Rle_trans; [apply norm2_triangle|]; rewrite norm2_scale, Rabs_mult, (Rabs_pos_eq _ B).
  pose proof (norm2_erase (S K) k beta 1 x B (Rle_refl 1)) as er.
  pose proof (norm2_decay (S K) a 1 s (Nat.lt_0_succ K) A) as de; fold x in de.
  assert (beta * Rabs v * norm2 (S K) k <= beta * Rabs v * kappa)
    by (apply Rmult_le_compat_l; [apply Rmult_le_pos; [exact B|apply Rabs_pos]|exact Q]).
  lra.
Qed.

Lemma exact_size K V a k beta v s0 kappa t : 0 <= kappa ->
  (forall p, (p < t)%nat -> (forall i, (i < K)%nat -> 0 <= a p i <= 1) /\ 0 <= beta p /\
    beta p * dot K (k p) (k p) <= 2 /\ norm2 K (k p) <= kappa) ->
  frobenius K V (fun j => exact K a k beta (fun p => v p j) (s0 j) t)
    <= frobenius K V s0 + kappa * rsum t (fun p => beta p * norm2 V (v p)).
Proof.
  intros HK; induction t as [|t IH]; intros H;
    [change (frobenius K V s0 <= frobenius K V s0 + kappa * 0); lra|].
  specialize (IH (fun p L => H p (Nat.lt_lt_succ_r _ _ L))); destruct (H t) as (A & B & G & Q); [lia|]; cbn [rsum].
  eapply Rle_trans.
  { unfold frobenius; apply norm2_mono; intros j _; rewrite Rabs_pos_eq by apply norm2_nonneg.
    cbn [exact]; apply (column_size K _ _ _ _ _ kappa A B G Q HK). }
  eapply Rle_trans; [apply norm2_triangle|]; rewrite norm2_scale, norm2_abs, Rabs_pos_eq by (apply Rmult_le_pos; assumption).
  unfold frobenius in *; lra.
Qed.

Lemma spread_nonneg u ud us D : 0 <= u -> 0 <= ud -> 0 <= us -> 0 <= spread u ud us D.
Proof.
  intros U UD S; unfold spread; pose proof (pow_1_le u (D + 4) U) as p; set (z := (1 + u) ^ (D + 4)) in *.
  assert (0 <= (z - 1) * ud) by (apply Rmult_le_pos; lra).
  assert (0 <= (z * (1 + ud)) * us) by (repeat apply Rmult_le_pos; lra); lra.
Qed.

Lemma spread_linear u ud us D : 0 <= u -> 0 <= ud -> 0 <= us -> let n := INR (D + 4) * u + ud + us in
  n < 1 -> 0 <= spread u ud us D <= n / (1 - n).
Proof.
  intros U UD S0; cbv zeta; intros H; split; [apply spread_nonneg; assumption|revert H; unfold spread].
  assert (step : forall p n x, 0 <= n -> 0 <= x -> n + x < 1 -> 0 <= p -> p * (1 - n) <= 1 -> p * (1 + x) * (1 - (n + x)) <= 1).
  { intros p n x N X L P H; assert (0 <= p * (1 - n) * (x * x)) by (repeat apply Rmult_le_pos; lra).
    assert (0 <= p * (n * x)) by (repeat apply Rmult_le_pos; lra).
    assert (0 <= p * (n * (x * x))) by (repeat apply Rmult_le_pos; lra). lra. }
  assert (power : forall j, INR j * u < 1 -> (1 + u) ^ j * (1 - INR j * u) <= 1).
  { induction j as [|j IH]; [simpl; lra|]; intros H; rewrite S_INR in *.
    assert (0 <= INR j * u) by (apply Rmult_le_pos; [apply pos_INR|exact U]).
    replace ((INR j + 1) * u) with (INR j * u + u) in * by ring.
    cbn [pow]; rewrite (Rmult_comm (1 + u)); specialize (IH ltac:(lra)); apply step; try lra; apply pow_le; lra. }
  intros H; assert (0 <= INR (D + 4) * u) by (apply Rmult_le_pos; [apply pos_INR|exact U]).
  assert (p0 : 0 <= (1 + u) ^ (D + 4)) by (apply pow_le; lra).
  specialize (power (D + 4)%nat); apply step with (x := ud) in power; try lra.
  apply step with (x := us) in power; try lra; [|apply Rmult_le_pos; lra].
  set (p := (1 + u) ^ (D + 4) * (1 + ud) * (1 + us)) in *; set (n := INR (D + 4) * u + ud + us) in *.
  apply Rmult_le_reg_r with (1 - n); [lra|]; unfold Rdiv; rewrite Rmult_assoc, Rinv_l by lra; lra.
Qed.
