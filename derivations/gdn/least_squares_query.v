(** With the least-squares substitute the transition's eigenvalue along the key stays in [-1, 1]. *)
Require Import Reals Lra Lia Psatz.
From Attnproof.derivations Require Import finite_sums.
From Attnproof.derivations.gdn Require Import statements.
Open Scope R_scope.

Theorem least_squares_query_proof : least_squares_query.
Proof.
  intros K t s kappa Ht Hs x c eigenvalue.
  assert (N : 0 <= dot K kappa kappa)
    by (apply rsum_nonneg; intros i _; pose proof (pow2_ge_0 (kappa i)); lra).
  assert (X : 0 <= x) by (unfold x; nra).
  assert (D : dot K c kappa = 2 * (x / (1 + x))).
  { unfold dot, c; rewrite (rsum_ext K _ (fun i => 2 * s ^ 2 / (1 + x) * (kappa i * kappa i)))
      by (intros; field; lra).
    rewrite rsum_scal; fold (dot K kappa kappa); unfold x; field; fold x; lra. }
  assert (Q : 0 <= x / (1 + x) < 1).
  { split; [apply Rmult_le_pos; [exact X|left; apply Rinv_0_lt_compat; lra]|].
    apply (Rmult_lt_reg_r (1 + x)); [lra|unfold Rdiv; rewrite Rmult_assoc, Rinv_l; lra]. }
  assert (T : 0 < / t <= / 2) by (split; [apply Rinv_0_lt_compat; lra|apply Rinv_le_contravar; lra]).
  assert (E : eigenvalue = 1 - / t - 2 * / t * (x / (1 + x))) by reflexivity.
  split; [|split].
  - intros i; rewrite D, E; ring.
  - rewrite E; unfold Rdiv at 1; split; nra.
  - rewrite E; split; nra.
Qed.
