(** The free energy exceeds its value at softmax by tau KL: Gibbs' inequality with equality. *)
Require Import Reals Lra Lia.
From Attnproof.derivations Require Import finite_sums.
From Attnproof.derivations.softmax Require Import statements weights.
Open Scope R_scope.

(** ln x <= x - 1, with equality at 1 only. *)
Lemma ln_le_minus_one x : 0 < x -> ln x <= x - 1.
Proof.
  intros Hx; rewrite <- (exp_ln x Hx) at 2.
  destruct (Req_dec (ln x) 0) as [E|E]; [rewrite E, exp_0; lra|].
  pose proof (exp_ineq1 (ln x) E); lra.
Qed.

Lemma ln_eq_minus_one x : 0 < x -> ln x = x - 1 -> x = 1.
Proof.
  intros Hx E; destruct (Req_dec (ln x) 0) as [Z|Z]; [rewrite Z in E; lra|].
  pose proof (exp_ineq1 (ln x) Z) as H; rewrite exp_ln in H by exact Hx; lra.
Qed.

(** Each term: a (ln a - ln p) >= a - p, with equality only at a = p. *)
Lemma term_bound a p : 0 <= a -> 0 < p -> 0 <= a * (ln a - ln p) - (a - p).
Proof.
  intros [Ha|Ha] Hp; [|subst; lra].
  assert (Hq : 0 < p / a) by (apply Rdiv_lt_0_compat; lra).
  pose proof (ln_le_minus_one _ Hq) as H; unfold Rdiv in H.
  rewrite ln_mult, ln_Rinv in H by (try apply Rinv_0_lt_compat; lra).
  assert (a * (ln p + - ln a) <= a * (p * / a - 1)) by (apply Rmult_le_compat_l; lra).
  replace (a * (p * / a - 1)) with (p - a) in H0 by (field; lra); lra.
Qed.

Lemma term_equal a p : 0 <= a -> 0 < p -> a * (ln a - ln p) - (a - p) = 0 -> a = p.
Proof.
  intros [Ha|Ha] Hp E; [|subst; lra].
  assert (Hq : 0 < p / a) by (apply Rdiv_lt_0_compat; lra).
  assert (L : ln (p / a) = ln p - ln a)
    by (unfold Rdiv; rewrite ln_mult, ln_Rinv by (try apply Rinv_0_lt_compat; lra); ring).
  assert (Q : p / a = 1).
  { apply ln_eq_minus_one; [exact Hq|rewrite L].
    apply (Rmult_eq_reg_l a); [|lra]. replace (a * (p / a - 1)) with (p - a) by (field; lra); lra. }
  apply (f_equal (fun x => x * a)) in Q; unfold Rdiv in Q.
  rewrite Rmult_assoc, Rinv_l in Q by lra; lra.
Qed.

Lemma identity n tau s a : (0 < n)%nat -> 0 < tau -> rsum n a = 1 ->
  free_energy n tau s a + tau * lse n tau s = tau * divergence n a (weight n tau s).
Proof.
  intros Hn Ht E; unfold free_energy, divergence.
  rewrite (rsum_ext n (fun j => a j * (ln (a j) - ln (weight n tau s j)))
    (fun j => a j * ln (a j) - / tau * (a j * s j) + lse n tau s * a j)).
  - rewrite rsum_plus, rsum_minus, !rsum_scal, E; field; lra.
  - intros i _; rewrite ln_weight by exact Hn; field; lra.
Qed.

Theorem entropic_ot_proof : entropic_ot.
Proof.
  intros n tau s a Hn Ht [Ha E].
  set (p := weight n tau s).
  assert (P : forall i, (i < n)%nat -> 0 < p i) by (intros i _; apply weight_pos, Hn).
  assert (excess : divergence n a p = rsum n (fun j => a j * (ln (a j) - ln (p j)) - (a j - p j))).
  { rewrite rsum_minus, rsum_minus; unfold p at 3; rewrite weight_sum, E by exact Hn.
    unfold divergence; ring. }
  assert (T : forall i, (i < n)%nat -> 0 <= a i * (ln (a i) - ln (p i)) - (a i - p i))
    by (intros i Hi; apply term_bound; [apply Ha|apply P]; exact Hi).
  split; [|split; [|split]].
  - apply identity; assumption.
  - pose proof (identity n tau s p Hn Ht (weight_sum n tau s Hn)) as I; fold p in I.
    replace (divergence n p p) with 0 in I.
    + lra.
    + unfold divergence; rewrite (rsum_ext n _ (fun _ => 0)), rsum_const by (intros; ring); ring.
  - rewrite excess; apply rsum_nonneg, T.
  - intros Z i Hi; rewrite excess in Z.
    apply term_equal; [apply Ha, Hi|apply P, Hi|exact (rsum_zero_all n _ T Z i Hi)].
Qed.
