(** A threshold makes clipped weights sum to 1: the intermediate value theorem. *)
Require Import Reals Lra Lia FunctionalExtensionality.
From Attnproof.derivations Require Import finite_sums.
From Attnproof.derivations.softmax Require Import statements.
Open Scope R_scope.

Lemma clip_continuous x : continuity (fun theta => Rmax 0 (x - theta)).
Proof.
  assert (E : forall theta, Rmax 0 (x - theta) = / 2 * ((x - theta) + Rabs (x - theta))).
  { intros theta; unfold Rmax, Rabs; destruct (Rle_dec 0 (x - theta)), (Rcase_abs (x - theta)); lra. }
  assert (D : continuity (fun theta => x - theta)) by (intros t; reg).
  assert (C : continuity (fun theta => / 2 * ((x - theta) + Rabs (x - theta)))).
  { intros t; apply continuity_pt_scal, continuity_pt_plus; [apply D|].
    apply (continuity_pt_comp (fun theta => x - theta) Rabs); [apply D|apply Rcontinuity_abs]. }
  replace (fun theta => Rmax 0 (x - theta)) with (fun theta => / 2 * ((x - theta) + Rabs (x - theta))).
  - exact C.
  - apply functional_extensionality; intros theta; symmetry; apply E.
Qed.

Lemma sum_continuous n (f : nat -> R -> R) : (forall j, continuity (f j)) ->
  continuity (fun theta => rsum n (fun j => f j theta)).
Proof.
  intros H; induction n as [|n IH]; simpl; intros t; [reg|].
  apply continuity_pt_plus; [apply IH|apply H].
Qed.

Lemma clip_power_continuous x p : continuity (fun theta => Rmax 0 (x - theta) ^ p).
Proof.
  induction p as [|p IH]; simpl; intros t; [reg|].
  apply continuity_pt_mult; [apply clip_continuous|apply IH].
Qed.

(** For every positive power of the clipped scores there is a threshold. *)
Lemma threshold n s p : (0 < n)%nat -> (0 < p)%nat ->
  exists theta, rsum n (fun j => Rmax 0 (s j - theta) ^ p) = 1.
Proof.
  intros Hn Hp; set (f theta := rsum n (fun j => Rmax 0 (s j - theta) ^ p)).
  set (M := rsum n (fun j => Rabs (s j))).
  assert (above : forall j, (j < n)%nat -> s j <= M).
  { intros j Hj; pose proof (rsum_term_le n (fun i => Rabs (s i)) j (fun i _ => Rabs_pos (s i)) Hj).
    pose proof (Rle_abs (s j)); unfold M; lra. }
  assert (high : f (M + 1) = 0).
  { unfold f; rewrite (rsum_ext n _ (fun _ => 0)), rsum_const; [ring|].
    intros j Hj; specialize (above j Hj); rewrite Rmax_left by lra; apply pow_i, Hp. }
  assert (low : 2 <= f (s O - 2)).
  { apply Rle_trans with (Rmax 0 (s O - (s O - 2)) ^ p).
    - replace (s O - (s O - 2)) with 2 by ring; rewrite Rmax_right by lra.
      destruct p as [|p]; [lia|simpl; pose proof (pow_R1_Rle 2 p ltac:(lra)); lra].
    - apply (rsum_term_le n (fun j => Rmax 0 (s j - (s O - 2)) ^ p)); [|exact Hn].
      intros j _; apply pow_le, Rmax_l. }
  destruct (IVT (fun theta => 1 - f theta) (s O - 2) (M + 1)) as (theta & _ & E).
  - intros t; apply continuity_pt_minus; [reg|].
    apply (sum_continuous n (fun j theta => Rmax 0 (s j - theta) ^ p)); intros j; apply clip_power_continuous.
  - specialize (above O Hn); lra.
  - lra.
  - lra.
  - exists theta; unfold f in E; lra.
Qed.
