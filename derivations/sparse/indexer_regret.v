(** What a slightly wrong indexer can lose, against any set of the same size. *)
Require Import Reals Bool Lra Lia.
From Attnproof.derivations Require Import finite_sums.
From Attnproof.derivations.softmax Require Import statements weights.
From Attnproof.derivations.sparse Require Import statements parts.
Open Scope R_scope.

Lemma exp_le x y : x <= y -> exp x <= exp y.
Proof. intros [H|H]; [left; apply exp_increasing, H|right; f_equal; exact H]. Qed.

Lemma size_le n A B : (forall j, (j < n)%nat -> A j = true -> B j = true) -> (size n A <= size n B)%nat.
Proof.
  induction n as [|n IH]; simpl; intros H; [lia|].
  assert (size n A <= size n B)%nat by (apply IH; intros j Hj; apply H; lia).
  destruct (A n) eqn:E; [rewrite (H n) by (lia || exact E); lia|destruct (B n); lia].
Qed.

Lemma size_and n A B : (size n (fun j => A j && B j) + size n (fun j => A j && others B j) = size n A)%nat.
Proof. induction n as [|n IH]; simpl; [reflexivity|unfold others at 2; destruct (A n), (B n); simpl; lia]. Qed.

Lemma part_and n A B f : part n (fun j => A j && B j) f + part n (fun j => A j && others B j) f = part n A f.
Proof.
  unfold part; rewrite <- rsum_plus; apply rsum_ext; intros j _; unfold others; destruct (A j), (B j); simpl; ring.
Qed.

(** Keys scored at most eps apart from the truth, up to a shift: the dropped mass is near the best one. *)
Lemma regret n keep best I s c eps : (0 < n)%nat ->
  (forall j, (j < n)%nat -> Rabs (I j - s j - c) <= eps) -> top_by n keep I -> size n best = size n keep ->
  (forall i j, (i < n)%nat -> (j < n)%nat -> keep i = true -> keep j = false -> s j <= s i + 2 * eps) /\
  part n (others keep) (weight n 1 s) <= exp (2 * eps) * part n (others best) (weight n 1 s).
Proof.
  intros Hn He Ht Hs.
  assert (near : forall i j, (i < n)%nat -> (j < n)%nat -> keep i = true -> keep j = false -> s j <= s i + 2 * eps).
  { intros i j Hi Hj Ki Kj; pose proof (Ht i j Hi Hj Ki Kj).
    pose proof (He i Hi) as Ei; pose proof (He j Hj) as Ej; rewrite <- Rabs_Ropp in Ei.
    pose proof (Rle_abs (- (I i - s i - c))); pose proof (Rle_abs (I j - s j - c)); pose proof (Rle_abs (- (I j - s j - c))).
    rewrite Rabs_Ropp in *; pose proof (Rle_abs (I i - s i - c)); pose proof (Rle_abs (- (I i - s i - c))).
    rewrite Rabs_Ropp in *; lra. }
  split; [exact near|].
  assert (Heps : 0 <= eps) by (pose proof (He O Hn); pose proof (Rabs_pos (I O - s O - c)); lra).
  assert (one : 1 <= exp (2 * eps)) by (rewrite <- exp_0; apply exp_le; lra).
  set (w := weight n 1 s); assert (W : forall j, 0 < w j) by (intros j; apply weight_pos, Hn).
  pose proof (part_and n (others keep) best w) as D; pose proof (part_and n (others best) keep w) as D'.
  assert (both : part n (fun j => others keep j && others best j) w = part n (fun j => others best j && others keep j) w).
  { apply rsum_ext; intros j _; destruct (others keep j), (others best j); reflexivity. }
  assert (sizes : size n (fun j => others keep j && best j) = size n (fun j => others best j && keep j)).
  { pose proof (size_and n best keep) as A; pose proof (size_and n keep best) as B.
    assert (E : size n (fun j => best j && keep j) = size n (fun j => keep j && best j)).
    { apply PeanoNat.Nat.le_antisymm; apply size_le; intros j _ E; rewrite andb_comm; exact E. }
    assert (E1 : size n (fun j => others keep j && best j) = size n (fun j => best j && others keep j)).
    { apply PeanoNat.Nat.le_antisymm; apply size_le; intros j _ F; rewrite andb_comm; exact F. }
    assert (E2 : size n (fun j => others best j && keep j) = size n (fun j => keep j && others best j)).
    { apply PeanoNat.Nat.le_antisymm; apply size_le; intros j _ F; rewrite andb_comm; exact F. }
    lia. }
  assert (cross : part n (fun j => others keep j && best j) w
    <= exp (2 * eps) * part n (fun j => others best j && keep j) w).
  { apply part_compare; [exact sizes|apply exp_pos| |intros j _; left; apply W].
    intros i j Hi Hj Ai Bj; apply andb_true_iff in Ai, Bj; unfold others in Ai, Bj.
    rewrite negb_true_iff in Ai, Bj; unfold w, weight; pose proof (normaliser_pos n 1 s Hn) as Z.
    replace (exp (2 * eps) * (exp (s j / 1) / normaliser n 1 s))
      with (exp (2 * eps + s j / 1) / normaliser n 1 s) by (rewrite exp_plus; unfold Rdiv; ring).
    apply Rmult_le_compat_r; [left; apply Rinv_0_lt_compat, Z|apply exp_le].
    pose proof (near j i Hj Hi (proj2 Bj) (proj1 Ai)); lra. }
  assert (N : 0 <= part n (fun j => others best j && others keep j) w) by (apply part_nonneg; intros j _; left; apply W).
  rewrite <- D, <- D', both; nra.
Qed.

Theorem indexer_regret_proof : indexer_regret.
Proof. exact regret. Qed.
