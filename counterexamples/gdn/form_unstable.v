(** The derived GDN form: where it is stable, where not, and a history on which it grows. *)
Require Import Reals QArith Lra Lia Psatz.
From Attnproof.derivations Require Import finite_sums.
From Attnproof.counterexamples.gdn Require Import statements.
Open Scope R_scope.

Lemma squared_nonneg K x : 0 <= squared K x.
Proof. apply rsum_nonneg; intros i _; pose proof (pow2_ge_0 (x i)); lra. Qed.

Lemma mean_square m f : (0 < m)%nat -> mean m f ^ 2 <= mean m (fun j => f j ^ 2).
Proof.
  intros Hm; assert (P : 0 < INR m) by (apply lt_0_INR, Hm).
  assert (V : 0 <= rsum m (fun j => (f j - mean m f) ^ 2)) by (apply rsum_nonneg; intros; apply pow2_ge_0).
  rewrite (rsum_ext m _ (fun j => f j ^ 2 - 2 * mean m f * f j + mean m f ^ 2)) in V by (intros; ring).
  rewrite rsum_plus, rsum_minus, rsum_scal, rsum_const in V.
  assert (E : rsum m f = INR m * mean m f) by (unfold mean; field; lra).
  assert (E2 : rsum m (fun j => f j ^ 2) = INR m * mean m (fun j => f j ^ 2)) by (unfold mean; field; lra).
  rewrite E, E2 in V; nra.
Qed.

(** The centred key is at most twice as long as the longest key, less the share 1/n. *)
Lemma centred_length K k n B : (0 < n)%nat -> (forall j, (j < n)%nat -> squared K (k j) <= B) ->
  squared K (centred k n) * INR n ^ 2 <= 4 * B * (INR n - 1) ^ 2.
Proof.
  intros Hn HB; destruct n as [|m]; [lia|]; simpl pred in *.
  assert (N : 0 < INR (S m)) by (apply lt_0_INR; lia).
  destruct (Nat.eq_dec m 0) as [->|Hm].
  - replace (squared K (centred k 1)) with 0; [simpl; lra|].
    symmetry; unfold squared, dot; rewrite (rsum_ext K _ (fun _ => 0)), rsum_const; [ring|].
    intros i _; unfold centred, mean; simpl; field.
  - assert (M : 0 < INR m) by (apply lt_0_INR; lia).
    set (d i := k m i - mean m (fun j => k j i)).
    assert (E : forall i, centred k (S m) i * INR (S m) = INR m * d i).
    { intros i; unfold centred, d, mean; cbn [rsum pred]; rewrite S_INR in *; field; lra. }
    assert (split : squared K (centred k (S m)) * INR (S m) ^ 2 = INR m ^ 2 * squared K d).
    { unfold squared, dot; rewrite <- rsum_scal, rsum_mult_r; apply rsum_ext; intros i _.
      replace (centred k (S m) i * centred k (S m) i * INR (S m) ^ 2)
        with ((centred k (S m) i * INR (S m)) * (centred k (S m) i * INR (S m))) by ring.
      rewrite !E; ring. }
    assert (avg : squared K (fun i => mean m (fun j => k j i)) <= B).
    { apply Rle_trans with (rsum K (fun i => mean m (fun j => k j i ^ 2))).
      - apply rsum_le; intros i _; pose proof (mean_square m (fun j => k j i) ltac:(lia)); simpl in *; lra.
      - unfold mean; rewrite (rsum_ext K _ (fun i => / INR m * rsum m (fun j => k j i ^ 2)))
          by (intros; unfold Rdiv; ring).
        rewrite rsum_scal, rsum_swap; apply (Rmult_le_reg_l (INR m)); [exact M|].
        rewrite <- Rmult_assoc, Rinv_r, Rmult_1_l by lra.
        rewrite <- rsum_const; apply rsum_le; intros j Hj.
        rewrite (rsum_ext K _ (fun i => k j i * k j i)) by (intros; ring); apply HB; lia. }
    assert (far : squared K d <= 4 * B).
    { apply Rle_trans with (2 * squared K (k m) + 2 * squared K (fun i => mean m (fun j => k j i))).
      - unfold squared, dot; rewrite <- !rsum_scal, <- rsum_plus; apply rsum_le; intros i _; unfold d.
        pose proof (pow2_ge_0 (k m i + mean m (fun j => k j i))); lra.
      - pose proof (HB m ltac:(lia)); lra. }
    rewrite split, S_INR; replace (INR m + 1 - 1) with (INR m) by ring.
    rewrite (Rmult_comm (4 * B)); apply Rmult_le_compat_l; [apply pow2_ge_0|exact far].
Qed.

Lemma step_squared K t kappa x : t <> 0 ->
  squared K (step K t kappa x) = (1 - / t) ^ 2 * squared K x
    - dot K kappa x ^ 2 * (2 * (t - 1) - squared K kappa) / t ^ 2.
Proof.
  intros Ht; unfold squared at 1, dot at 1, step.
  rewrite (rsum_ext K _ (fun i => (1 - / t) ^ 2 * (x i * x i)
    - 2 * (1 - / t) * / t * dot K kappa x * (kappa i * x i)
    + (/ t * dot K kappa x) ^ 2 * (kappa i * kappa i))) by (intros; ring).
  rewrite rsum_plus, rsum_minus, !rsum_scal; unfold squared; fold (dot K x x) (dot K kappa x) (dot K kappa kappa).
  field; exact Ht.
Qed.

Theorem form_unstable_proof : form_unstable.
Proof.
  refine (conj _ (conj _ (conj _ (conj _ _)))).
  - intros K t kappa Ht; pose proof (squared_nonneg K kappa) as N; refine (conj _ (conj _ _)).
    + intros i; unfold step, eigenvalue, squared; field; lra.
    + intros x E i; unfold step; rewrite E; ring.
    + unfold eigenvalue; set (y := squared K kappa) in *; split; intros H.
      * apply (Rmult_le_reg_r (/ t)); [apply Rinv_0_lt_compat; lra|].
        replace ((2 * t - 1) * / t) with (2 - / t) by (field; lra). unfold Rdiv in H; lra.
      * assert (P : 0 < / t) by (apply Rinv_0_lt_compat; lra).
        assert (y * / t <= 2 - / t).
        { replace (2 - / t) with ((2 * t - 1) * / t) by (field; lra); apply Rmult_le_compat_r; lra. }
        assert (0 <= y * / t) by (apply Rmult_le_pos; lra). unfold Rdiv; lra.
  - intros K k n Hn HB; pose proof (centred_length K k n _ Hn HB) as L; pose proof (squared_nonneg K (centred k n)) as N.
    assert (T : 1 <= INR n) by (apply (le_INR 1); lia).
    unfold eigenvalue; set (y := squared K (centred k n)) in *.
    assert (Y : y <= 2 * INR n - 1).
    { apply (Rmult_le_reg_r (INR n ^ 2)); [apply pow_lt; lra|].
      apply Rle_trans with (1 := L).
      destruct n as [|[|[|[|n]]]]; [lia|simpl; lra|simpl; lra|simpl; lra|].
      assert (Q : 4 <= INR (S (S (S (S n))))) by (replace 4 with (INR 4) by (simpl; ring); apply le_INR; lia).
      set (t := INR (S (S (S (S n))))) in *.
      assert (0 <= (t - 3) * (2 * t ^ 2 - 25 / 4 * t + 15 / 4)) by (apply Rmult_le_pos; nra).
      assert ((2 * t - 1) * t ^ 2 - 4 * (45 / 16) * (t - 1) ^ 2
        = (t - 3) * (2 * t ^ 2 - 25 / 4 * t + 15 / 4)) by field; lra. }
    assert (P : 0 < / INR n) by (apply Rinv_0_lt_compat; lra).
    assert (y * / INR n <= 2 - / INR n).
    { replace (2 - / INR n) with ((2 * INR n - 1) * / INR n) by (field; lra); apply Rmult_le_compat_r; lra. }
    assert (0 <= y * / INR n) by (apply Rmult_le_pos; lra). unfold Rdiv; lra.
  - intros B HB; set (r := sqrt B); assert (RR : r * r = B) by (apply sqrt_sqrt; lra).
    exists (fun j _ => if Nat.eqb j 2 then r else - r); split.
    + intros j; unfold squared, dot; simpl; destruct (Nat.eqb j 2); nra.
    + unfold eigenvalue, squared, dot, centred, mean; simpl; nra.
  - apply Qle_bool_iff; vm_compute; reflexivity.
  - intros K k n B x Hn HB HT; assert (T : 1 <= INR n) by (apply (le_INR 1); lia).
    pose proof (centred_length K k n _ Hn HB) as L; pose proof (squared_nonneg K (k O)) as P.
    pose proof (HB O Hn) as HB0; rewrite step_squared by lra.
    assert (Y : squared K (centred k n) <= 2 * (INR n - 1)).
    { apply (Rmult_le_reg_r (INR n ^ 2)); [apply pow_lt; lra|]; apply Rle_trans with (1 := L).
      assert (4 * B * (INR n - 1) ^ 2 <= 2 * INR n * (INR n - 1) ^ 2)
        by (apply Rmult_le_compat_r; [apply pow2_ge_0|lra]). nra. }
    assert (0 <= dot K (centred k n) x ^ 2 * (2 * (INR n - 1) - squared K (centred k n)) / INR n ^ 2).
    { apply Rmult_le_pos; [apply Rmult_le_pos; [apply pow2_ge_0|lra]|left; apply Rinv_0_lt_compat, pow_lt; lra]. }
    lra.
Qed.
