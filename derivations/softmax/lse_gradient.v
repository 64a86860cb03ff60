(** Log-sum-exp: gradient, Hessian, its kernel, the conjugate pair, and the Bregman divergence. *)
Require Import Reals Lra Lia.
From Coquelicot Require Import Coquelicot.
From Attnproof.derivations Require Import finite_sums.
From Attnproof.derivations.softmax Require Import statements weights derivatives entropic_ot.
Open Scope R_scope.

Section Form.
Variables (n : nat) (tau : R) (s : nat -> R).
Hypotheses (Hn : (0 < n)%nat) (Ht : 0 < tau).
Let p := weight n tau s.
Let mean (x : nat -> R) := rsum n (fun i => p i * x i).

(** x^T H x is the variance of x under the weights, over tau. *)
Lemma form_is_variance x :
  rsum n (fun i => rsum n (fun j => x i * hessian n tau s i j * x j))
    = / tau * rsum n (fun i => p i * (x i - mean x) ^ 2).
Proof.
  assert (inner : forall i, (i < n)%nat ->
    rsum n (fun j => x i * hessian n tau s i j * x j) = / tau * (p i * x i * x i - p i * x i * mean x)).
  { intros i Hi.
    rewrite (rsum_ext n _ (fun j => / tau * (p i * x i * (x j * delta j i) - p i * x i * (p j * x j)))).
    - rewrite rsum_scal, rsum_minus, !rsum_scal, rsum_delta by exact Hi; unfold mean; ring.
    - intros j _; unfold hessian; fold p.
      replace (delta i j) with (delta j i)
        by (unfold delta; destruct (Nat.eq_dec i j), (Nat.eq_dec j i); congruence).
      ring. }
  rewrite (rsum_ext n _ _ inner), rsum_scal; f_equal.
  rewrite (rsum_ext n (fun i => p i * (x i - mean x) ^ 2)
    (fun i => p i * x i * x i - 2 * mean x * (p i * x i) + mean x ^ 2 * p i)) by (intros; ring).
  rewrite rsum_plus, !rsum_minus, !rsum_scal.
  rewrite (rsum_ext n (fun i => p i * x i * mean x) (fun i => mean x * (p i * x i))) by (intros; ring).
  rewrite rsum_scal; assert (one : rsum n p = 1) by (apply weight_sum, Hn).
  rewrite one; unfold mean; ring.
Qed.

Lemma form_nonneg x : 0 <= rsum n (fun i => rsum n (fun j => x i * hessian n tau s i j * x j)).
Proof.
  rewrite form_is_variance; apply Rmult_le_pos; [left; apply Rinv_0_lt_compat, Ht|].
  apply rsum_nonneg; intros i _; apply Rmult_le_pos; [left; apply weight_pos, Hn|apply pow2_ge_0].
Qed.

Lemma form_kernel x : rsum n (fun i => rsum n (fun j => x i * hessian n tau s i j * x j)) = 0 <->
  exists c, forall i, (i < n)%nat -> x i = c.
Proof.
  rewrite form_is_variance; split.
  - intros E; exists (mean x); intros i Hi.
    assert (Z : rsum n (fun i => p i * (x i - mean x) ^ 2) = 0)
      by (apply (Rmult_eq_reg_l (/ tau)); [lra|apply Rinv_neq_0_compat; lra]).
    assert (T : forall k, (k < n)%nat -> 0 <= p k * (x k - mean x) ^ 2)
      by (intros k _; apply Rmult_le_pos; [left; apply weight_pos, Hn|apply pow2_ge_0]).
    pose proof (rsum_zero_all n _ T Z i Hi) as E0; cbv beta in E0.
    pose proof (weight_pos n tau s i Hn) as P; fold p in P.
    apply Rmult_integral in E0; destruct E0 as [E0|E0]; [lra|nra].
  - intros [c Hc].
    assert (M : mean x = c).
    { unfold mean; rewrite (rsum_ext n _ (fun i => c * p i)) by (intros i Hi; rewrite Hc by exact Hi; ring).
      rewrite rsum_scal; unfold p; rewrite weight_sum by exact Hn; ring. }
    rewrite (rsum_ext n _ (fun _ => 0)), rsum_const; [ring|].
    intros i Hi; rewrite M, Hc by exact Hi; ring.
Qed.

Lemma lse_derive j : (j < n)%nat ->
  is_derive (fun x => tau * lse n tau (changed s j x)) (s j) (weight n tau s j).
Proof.
  intros Hj; pose proof (normaliser_pos n tau s Hn) as Z.
  pose proof (normaliser_derive n tau s j Hj (Rgt_not_eq _ _ Ht)) as D.
  assert (L : is_derive ln (normaliser n tau (changed s j (s j))) (/ normaliser n tau s))
    by (rewrite normaliser_changed_self; apply is_derive_Reals, derivable_pt_lim_ln, Z).
  pose proof (is_derive_comp ln _ _ _ _ L D) as C.
  apply (is_derive_scal _ _ tau) in C; unfold lse.
  replace (weight n tau s j) with (tau * scal (exp (s j / tau) / tau) (/ normaliser n tau s)).
  - exact C.
  - unfold scal; simpl; unfold mult; simpl; unfold weight; field; lra.
Qed.
End Form.

Theorem lse_gradient_proof : lse_gradient.
Proof.
  intros n tau s Hn Ht; refine (conj _ (conj _ (conj _ (conj _ (conj _ (conj _ _)))))).
  - intros j Hj; apply lse_derive; assumption.
  - intros i j _ Hj; apply weight_derive; assumption.
  - intros x; apply form_nonneg; assumption.
  - intros x; apply form_kernel; assumption.
  - intros a Ha; destruct (entropic_ot_proof n tau s a Hn Ht Ha) as (I & _ & N & _).
    unfold free_energy in I; assert (0 <= tau * divergence n a (weight n tau s))
      by (apply Rmult_le_pos; lra). lra.
  - assert (S : on_simplex n (weight n tau s))
      by (split; [intros i _; left; apply weight_pos, Hn|apply weight_sum, Hn]).
    destruct (entropic_ot_proof n tau s _ Hn Ht S) as (_ & F & _); unfold free_energy in F; lra.
  - intros t; unfold divergence.
    rewrite (rsum_ext n (fun j => weight n tau s j * (ln (weight n tau s j) - ln (weight n tau t j)))
      (fun j => (lse n tau t - lse n tau s) * weight n tau s j - / tau * (weight n tau s j * (t j - s j)))).
    + rewrite rsum_minus, !rsum_scal, weight_sum by exact Hn; field; lra.
    + intros j _; rewrite !ln_weight by exact Hn; field; lra.
Qed.
