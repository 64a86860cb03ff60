(** Scores far below the largest one carry little mass. *)
Require Import Reals Bool Lra Lia.
From Attnproof.derivations Require Import finite_sums.
From Attnproof.derivations.softmax Require Import statements weights.
From Attnproof.derivations.sparse Require Import statements parts indexer_regret.
Open Scope R_scope.

Theorem gap_bound_proof : gap_bound.
Proof.
  intros n keep s top Delta Ht Kt HD H m; assert (Hn : (0 < n)%nat) by lia; split.
  - pose proof (normaliser_pos n 1 s Hn) as Z; pose proof (exp_pos (s top)) as E; pose proof (exp_pos (- Delta)) as F.
    assert (M : 0 <= m) by apply pos_INR.
    set (x := part n (others keep) (fun j => exp (s j / 1))); set (y := part n keep (fun j => exp (s j / 1))).
    assert (X : 0 <= x) by (apply part_nonneg; intros j _; left; apply exp_pos).
    assert (XY : y + x = normaliser n 1 s) by apply part_split.
    assert (low : exp (s top) <= y).
    { replace (exp (s top)) with (if keep top then exp (s top / 1) else 0) by (rewrite Kt; f_equal; field).
      apply (rsum_term_le n (fun j => if keep j then exp (s j / 1) else 0)); [|exact Ht].
      intros j _; destruct (keep j); [left; apply exp_pos|lra]. }
    assert (high : x <= m * (exp (s top) * exp (- Delta))).
    { unfold m; rewrite <- part_const; apply part_le; intros j Hj Oj; rewrite <- exp_plus; apply exp_le.
      replace (s j / 1) with (s j) by field.
      unfold others in Oj; rewrite negb_true_iff in Oj; specialize (H j Hj Oj); lra. }
    replace (part n (others keep) (weight n 1 s)) with (x / (y + x)).
    + set (g := m * exp (- Delta)); assert (G : 0 <= g) by (apply Rmult_le_pos; lra).
      assert (B : x <= g * y) by (unfold g in *; nra).
      apply (Rmult_le_reg_r ((y + x) * (1 + g))); [nra|].
      replace (x / (y + x) * ((y + x) * (1 + g))) with (x * (1 + g)) by (field; lra).
      replace (g / (1 + g) * ((y + x) * (1 + g))) with (g * (y + x)) by (field; lra); nra.
    + rewrite XY; unfold Rdiv, x; rewrite Rmult_comm, <- part_scal; apply part_ext; intros j _ _.
      unfold weight, Rdiv; ring.
  - intros u Hm b; pose proof (exp_pos (- Delta)) as F; pose proof (exp_pos u) as U.
    assert (E : exp (- (Delta + u)) = exp (- Delta) / exp u)
      by (replace (- (Delta + u)) with (- Delta + - u) by ring; rewrite exp_plus, (exp_Ropp u); reflexivity).
    assert (Q : b Delta / b (Delta + u) = (exp u + m * exp (- Delta)) / (1 + m * exp (- Delta))).
    { unfold b; rewrite E; field; repeat split; nra. }
    split; [exact Q|]; rewrite Q; apply Rmult_le_compat_r; [left; apply Rinv_0_lt_compat; nra|nra].
Qed.
