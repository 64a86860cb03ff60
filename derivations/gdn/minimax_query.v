(** The query that makes the first-order self weight largest is along the centred key. *)
Require Import Reals Lra Lia Psatz.
From Attnproof.derivations Require Import finite_sums.
From Attnproof.derivations.gdn Require Import statements.
Open Scope R_scope.

Theorem minimax_query_proof : minimax_query.
Proof.
  intros K t r kappa Ht Hr Hk best; set (len := sqrt (dot K kappa kappa)) in *.
  assert (L : 0 < len) by (apply sqrt_lt_R0, Hk).
  assert (LL : len * len = dot K kappa kappa) by (apply sqrt_sqrt; lra).
  assert (along : forall q, dot K q best = r / len * dot K q kappa).
  { intros q; unfold dot, best; rewrite <- rsum_scal; apply rsum_ext; intros i _; field; lra. }
  assert (BB : dot K best best = r ^ 2).
  { rewrite along; replace (dot K best kappa) with (dot K kappa best)
      by (apply rsum_ext; intros; ring).
    rewrite along, <- LL; field; lra. }
  assert (gap : forall q, rsum K (fun i => (q i - best i) ^ 2) = dot K q q - 2 * dot K q best + r ^ 2).
  { intros q; rewrite <- BB; unfold dot.
    rewrite (rsum_ext K _ (fun i => q i * q i - 2 * (q i * best i) + best i * best i)) by (intros; ring).
    rewrite rsum_plus, rsum_minus, rsum_scal; ring. }
  assert (value : dot K best kappa = r * len).
  { replace (dot K best kappa) with (dot K kappa best) by (apply rsum_ext; intros; ring).
    rewrite along, <- LL; field; lra. }
  assert (bound : forall q, dot K q q <= r ^ 2 -> dot K q kappa <= r * len).
  { intros q Hq; assert (0 <= rsum K (fun i => (q i - best i) ^ 2))
      by (apply rsum_nonneg; intros; apply pow2_ge_0).
    rewrite gap, along in H; assert (r / len * dot K q kappa <= r ^ 2) by lra.
    apply (Rmult_le_reg_l (r / len)); [apply Rdiv_lt_0_compat; assumption|].
    replace (r / len * (r * len)) with (r ^ 2) by (field; lra); exact H0. }
  refine (conj BB (conj _ (conj _ _))).
  - intros q Hq; unfold first_order; apply Rmult_le_compat_r; [left; apply Rinv_0_lt_compat, Ht|].
    rewrite value; specialize (bound q Hq); lra.
  - intros q Hq E i Hi; unfold first_order in E.
    assert (E' : dot K q kappa = r * len).
    { apply (Rmult_eq_compat_r t) in E; unfold Rdiv in E.
      rewrite !Rmult_assoc, Rinv_l, value in E by lra; lra. }
    assert (Z : rsum K (fun i => (q i - best i) ^ 2) = 0).
    { apply Rle_antisym; [|apply rsum_nonneg; intros; apply pow2_ge_0].
      rewrite gap, along, E'; replace (r / len * (r * len)) with (r ^ 2) by (field; lra); lra. }
    pose proof (rsum_zero_all K _ (fun j _ => pow2_ge_0 (q j - best j)) Z i Hi) as S; cbv beta in S; nra.
  - intros E i; unfold best; rewrite E; field; lra.
Qed.
