(** What dropping a set of mass delta does to the output, and how far the weights move. *)
Require Import Reals Bool Lra Lia.
From Attnproof.derivations Require Import finite_sums.
From Attnproof.derivations.softmax Require Import statements.
From Attnproof.derivations.sparse Require Import statements parts.
Open Scope R_scope.

(** Jensen for squares: the square of an average is at most the average of the squares. *)
Lemma jensen n a x : on_simplex n a -> average n a x ^ 2 <= average n a (fun j => x j ^ 2).
Proof.
  intros [A0 A1]; assert (V : 0 <= rsum n (fun j => a j * (x j - average n a x) ^ 2)).
  { apply rsum_nonneg; intros j Hj; apply Rmult_le_pos; [apply A0, Hj|apply pow2_ge_0]. }
  rewrite (rsum_ext n _ (fun j => a j * x j ^ 2 - 2 * average n a x * (a j * x j) + average n a x ^ 2 * a j))
    in V by (intros; ring).
  rewrite rsum_plus, rsum_minus, !rsum_scal, A1 in V; fold (average n a x) (average n a (fun j => x j ^ 2)) in V.
  nra.
Qed.

(** The average of vectors is as close to a point as the vectors are. *)
Lemma average_close n K a (v : nat -> nat -> R) y D2 : on_simplex n a ->
  (forall j, (j < n)%nat -> dot K (fun c => v j c - y c) (fun c => v j c - y c) <= D2) ->
  dot K (fun c => average n a (fun j => v j c) - y c) (fun c => average n a (fun j => v j c) - y c) <= D2.
Proof.
  intros Ha H; pose proof Ha as [A0 A1].
  assert (E : forall c, average n a (fun j => v j c) - y c = average n a (fun j => v j c - y c)).
  { intros c; unfold average; rewrite (rsum_ext n (fun j => a j * (v j c - y c)) (fun j => a j * v j c - y c * a j))
      by (intros; ring); rewrite rsum_minus, rsum_scal, A1; ring. }
  apply Rle_trans with (rsum K (fun c => average n a (fun j => (v j c - y c) ^ 2))).
  - unfold dot; apply rsum_le; intros c _; rewrite E.
    pose proof (jensen n a (fun j => v j c - y c) Ha) as J; cbv beta in J; lra.
  - unfold average; rewrite rsum_swap; apply Rle_trans with (rsum n (fun j => D2 * a j)).
    + apply rsum_le; intros j Hj; rewrite rsum_scal, Rmult_comm; apply Rmult_le_compat_r; [apply A0, Hj|].
      specialize (H j Hj); unfold dot in H; rewrite (rsum_ext K _ (fun c => (v j c - y c) ^ 2)) in H
        by (intros; ring); exact H.
    + rewrite rsum_scal, A1; lra.
Qed.

Theorem dropped_mass_proof : dropped_mass.
Proof.
  intros n keep p [P0 P1] Hd delta q mu.
  pose proof (part_split n keep p) as S; rewrite P1 in S; fold delta in S, Hd.
  assert (M : part n keep p = 1 - delta) by lra.
  assert (Q0 : forall j, (j < n)%nat -> 0 <= q j).
  { intros j Hj; unfold q, kept; destruct (keep j); [|lra].
    apply Rmult_le_pos; [apply P0, Hj|left; apply Rinv_0_lt_compat; lra]. }
  assert (avg : forall w, (1 - delta) * average n q w = part n keep (fun j => p j * w j)).
  { intros w; unfold average, part; rewrite <- rsum_scal; apply rsum_ext; intros j _; unfold q, kept; rewrite M.
    destruct (keep j); field; lra. }
  assert (Q1 : rsum n q = 1).
  { pose proof (avg (fun _ => 1)) as A; unfold average in A.
    rewrite (rsum_ext n _ q), (part_ext n keep _ p) in A by (intros; ring); rewrite M in A; nra. }
  assert (move : forall w, average n p w - average n q w = delta * (mu w - average n q w)).
  { intros w; pose proof (part_split n keep (fun j => p j * w j)) as T; rewrite <- avg in T.
    unfold average at 1, mu; fold (average n p w) in T; unfold average at 2 in T; rewrite <- T; field; lra. }
  set (d := kept n (others keep) p).
  assert (muavg : forall w, mu w = average n d w).
  { intros w; unfold mu, average, d, kept, part; fold (part n (others keep) p); fold delta; unfold Rdiv.
    rewrite rsum_mult_r; apply rsum_ext; intros j _; destruct (others keep j); ring. }
  assert (Hdel : on_simplex n d).
  { split; [intros j Hj; unfold d, kept; fold delta; destruct (others keep j); [|lra];
      apply Rmult_le_pos; [apply P0, Hj|left; apply Rinv_0_lt_compat; lra]|].
    pose proof (muavg (fun _ => 1)) as A; unfold average, mu in A.
    rewrite (rsum_ext n _ d), (part_ext n (others keep) _ p) in A by (intros; ring).
    fold delta in A; rewrite <- A; field; lra. }
  refine (conj (conj Q0 Q1) (conj move (conj _ (conj _ _)))).
  - intros K v D m HD Hm o far.
    assert (F : forall X, (forall i j, (i < n)%nat -> (j < n)%nat ->
      dot K (fun c => v i c - v j c) (fun c => v i c - v j c) <= X) -> far <= delta ^ 2 * X).
    { intros X HX.
      assert (E : far = delta ^ 2 * dot K (fun c => o d c - o q c) (fun c => o d c - o q c)).
      { unfold far, dot; rewrite <- rsum_scal; apply rsum_ext; intros c _; unfold o.
        rewrite (move (fun j => v j c)), muavg; ring. }
      rewrite E; apply Rmult_le_compat_l; [apply pow2_ge_0|].
      apply (average_close n K d v (o q) X Hdel); intros i Hi.
      unfold dot; rewrite (rsum_ext K _ (fun c => (o q c - v i c) * (o q c - v i c))) by (intros; ring).
      apply (average_close n K q v (v i) X (conj Q0 Q1)); intros j Hj; apply HX; assumption. }
    split; [rewrite Rpow_mult_distr; apply F, HD|].
    replace ((2 * delta * m) ^ 2) with (delta ^ 2 * (4 * m ^ 2)) by ring; apply F; intros i j Hi Hj.
    apply Rle_trans with (2 * dot K (v i) (v i) + 2 * dot K (v j) (v j)).
    + unfold dot; rewrite <- !rsum_scal, <- rsum_plus; apply rsum_le; intros c _.
      pose proof (pow2_ge_0 (v i c + v j c)); lra.
    + pose proof (Hm i Hi); pose proof (Hm j Hj); lra.
  - assert (E : rsum n (fun j => Rabs (q j - p j)) = delta / (1 - delta) * part n keep p + part n (others keep) p).
    { rewrite <- part_scal; unfold part; rewrite <- rsum_plus; apply rsum_ext; intros j Hj.
      pose proof (P0 j Hj) as Pj; unfold q, kept, others; rewrite M; destruct (keep j); simpl.
      - replace (p j / (1 - delta) - p j) with (delta / (1 - delta) * p j) by (field; lra).
        rewrite Rabs_right; [ring|apply Rle_ge, Rmult_le_pos; [|exact Pj]].
        apply Rmult_le_pos; [lra|left; apply Rinv_0_lt_compat; lra].
      - rewrite Rabs_left1 by lra; ring. }
    rewrite E, M; fold delta; field; lra.
  - assert (E : divergence n q p = - ln (1 - delta) * rsum n q).
    { unfold divergence; rewrite <- rsum_scal; apply rsum_ext; intros j Hj; unfold q, kept; rewrite M.
      destruct (keep j); [|ring]; destruct (P0 j Hj) as [L|L]; [|rewrite <- L; field; lra].
      unfold Rdiv; rewrite ln_mult, ln_Rinv by (try apply Rinv_0_lt_compat; lra); ring. }
    rewrite E, Q1; ring.
Qed.
