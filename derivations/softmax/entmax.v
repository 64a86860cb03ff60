(** 1.5-entmax is the unique minimiser for the Tsallis entropy of order 3/2. *)
Require Import Reals Lra Lia.
From Attnproof.derivations Require Import finite_sums.
From Attnproof.derivations.softmax Require Import statements thresholds.
Open Scope R_scope.

Theorem entmax_proof : entmax.
Proof.
  intros n s Hn z a cost; split.
  - destruct (threshold n z 2 Hn ltac:(lia)) as (theta & E); exists theta; exact E.
  - intros theta b A1 [B0 B1]; set (y j := clipped z theta j).
    assert (Y0 : forall j, 0 <= y j) by (intros j; apply Rmax_l).
    assert (root : forall j, sqrt (a theta j) = y j) by (intros j; apply sqrt_pow2, Y0).
    set (x j := sqrt (b j)); assert (X0 : forall j, 0 <= x j) by (intros j; apply sqrt_pos).
    assert (XX : forall j, (j < n)%nat -> x j ^ 2 = b j) by (intros j Hj; apply pow2_sqrt, B0, Hj).
    set (term j := 4 / 3 * (x j ^ 3 - y j ^ 3) - 2 * (z j - theta) * (x j ^ 2 - y j ^ 2)).
    assert (sum : cost b - cost (a theta) = rsum n term).
    { unfold cost, term; rewrite (rsum_ext n (fun j => b j * s j) (fun j => 2 * (x j ^ 2 * z j)))
        by (intros j Hj; rewrite XX by exact Hj; unfold z; field).
      rewrite (rsum_ext n (fun j => a theta j * s j) (fun j => 2 * (y j ^ 2 * z j)))
        by (intros j _; unfold a; fold (y j); unfold z; field).
      rewrite (rsum_ext n (fun j => sqrt (a theta j) ^ 3) (fun j => y j ^ 3)) by (intros j _; rewrite root; reflexivity).
      rewrite (rsum_ext n (fun j => 4 / 3 * (x j ^ 3 - y j ^ 3) - 2 * (z j - theta) * (x j ^ 2 - y j ^ 2))
        (fun j => 4 / 3 * x j ^ 3 - 4 / 3 * y j ^ 3 - 2 * (x j ^ 2 * z j) + 2 * (y j ^ 2 * z j)
          + (2 * theta * x j ^ 2 - 2 * theta * y j ^ 2))) by (intros; ring).
      assert (SX : rsum n (fun j => x j ^ 2) = 1) by (rewrite (rsum_ext n _ b) by exact XX; exact B1).
      assert (SY : rsum n (fun j => y j ^ 2) = 1) by exact A1.
      rewrite !rsum_plus, !rsum_minus, !rsum_scal, SX, SY; unfold x; field. }
    assert (each : forall j, 0 <= term j /\ (term j = 0 -> x j = y j)).
    { intros j; pose proof (X0 j) as Xj; unfold term; destruct (Rle_dec 0 (z j - theta)) as [H|H].
      - assert (E : y j = z j - theta) by (unfold y, clipped; apply Rmax_right, H); rewrite <- E; pose proof (Y0 j).
        replace (4 / 3 * (x j ^ 3 - y j ^ 3) - 2 * y j * (x j ^ 2 - y j ^ 2))
          with (2 / 3 * ((x j - y j) ^ 2 * (2 * x j + y j))) by field.
        assert (P : 0 <= (x j - y j) ^ 2 * (2 * x j + y j)) by (apply Rmult_le_pos; [apply pow2_ge_0|lra]).
        split; [lra|intros Z; assert (Q : (x j - y j) ^ 2 * (2 * x j + y j) = 0) by lra].
        apply Rmult_integral in Q; destruct Q as [Q|Q]; [|lra].
        simpl in Q; rewrite Rmult_1_r in Q; apply Rmult_integral in Q; lra.
      - assert (E : y j = 0) by (unfold y, clipped; apply Rmax_left; lra); rewrite E.
        assert (P : 0 <= x j ^ 3) by (apply pow_le, Xj); assert (Q : 0 <= x j ^ 2) by apply pow2_ge_0.
        assert (S : 0 <= (theta - z j) * x j ^ 2) by (apply Rmult_le_pos; lra).
        split; [simpl in *; lra|intros Z].
        assert (C : x j ^ 3 = 0) by (simpl in *; lra).
        destruct (Req_dec (x j) 0) as [D|D]; [exact D|exfalso; exact (pow_nonzero _ 3 D C)]. }
    refine (conj (conj _ A1) (conj _ _)).
    + intros j _; apply pow2_ge_0.
    + pose proof (rsum_nonneg n term (fun j _ => proj1 (each j))); lra.
    + intros L j Hj; assert (Z : rsum n term = 0).
      { pose proof (rsum_nonneg n term (fun i _ => proj1 (each i))); lra. }
      pose proof (rsum_zero_all n term (fun i _ => proj1 (each i)) Z j Hj) as T.
      apply (each j) in T; rewrite <- XX by exact Hj; rewrite T; reflexivity.
Qed.
