(** Sparsemax is the unique Euclidean projection on the simplex. *)
Require Import Reals Lra Lia.
From Attnproof.derivations Require Import finite_sums.
From Attnproof.derivations.softmax Require Import statements thresholds.
Open Scope R_scope.

Theorem sparsemax_proof : sparsemax.
Proof.
  intros n s Hn cost; split.
  - destruct (threshold n s 1 Hn ltac:(lia)) as (theta & E); exists theta; rewrite <- E.
    apply rsum_ext; intros j _; unfold clipped; ring.
  - intros theta b A1 [B0 B1]; set (a := clipped s theta) in *.
    assert (A0 : forall j, 0 <= a j) by (intros j; apply Rmax_l).
    assert (gain : cost a + / 2 * rsum n (fun j => (b j - a j) ^ 2) <= cost b).
    { assert (S : 0 <= rsum n (fun j => (b j - a j) * (a j - s j + theta))).
      { apply rsum_nonneg; intros j Hj; specialize (B0 j Hj); unfold a, clipped, Rmax.
        destruct (Rle_dec 0 (s j - theta)) as [H|H]; [right; ring|apply Rmult_le_pos; lra]. }
      rewrite (rsum_ext n _ (fun j => (/ 2 * b j ^ 2 - b j * s j) - (/ 2 * a j ^ 2 - a j * s j)
        - / 2 * (b j - a j) ^ 2 + (theta * b j - theta * a j))) in S by (intros; field).
      rewrite rsum_plus, !rsum_minus, !rsum_scal, B1, A1 in S; unfold cost; lra. }
    refine (conj (conj (fun j _ => A0 j) A1) (conj gain _)).
    intros L j Hj; assert (Z : rsum n (fun i => (b i - a i) ^ 2) = 0).
    { apply Rle_antisym; [lra|apply rsum_nonneg; intros; apply pow2_ge_0]. }
    pose proof (rsum_zero_all n _ (fun i _ => pow2_ge_0 (b i - a i)) Z j Hj) as E; cbv beta in E; nra.
Qed.
