(** Rounded numbers, vectors and inner products. Magnitudes carry a multiple of tiny with them, so that each
    rounding is a factor 1 + u. *)
Require Import Reals List Permutation Lra Lia.
From Attnproof.derivations.kernel Require Import statements.
From Attnproof.derivations.kernel Require Export lengths.
Open Scope R_scope.

(** The room T >= tiny that a magnitude carries. *)
Lemma near_error u tiny T x y : 0 <= u -> tiny <= T -> near u tiny x y -> Rabs (y - x) <= u * (Rabs x + T).
Proof. intros U H N; eapply Rle_trans; [exact N|apply Rmult_le_compat_l; lra]. Qed.

Lemma abs_near x y e : Rabs (y - x) <= e -> Rabs y <= Rabs x + e.
Proof. intros H; replace y with (x + (y - x)) at 1 by ring; eapply Rle_trans; [apply Rabs_triang|lra]. Qed.

Lemma near_size u tiny T x y : 0 <= u -> tiny <= T -> near u tiny x y -> Rabs y + T <= (1 + u) * (Rabs x + T).
Proof. intros U H N; apply (near_error _ _ _ _ _ U H), abs_near in N; lra. Qed.

Lemma norm2_near K x y e : norm2 K (fun i => y i - x i) <= e -> norm2 K y <= norm2 K x + e.
Proof.
  intros H; rewrite (norm2_ext K y (fun i => x i + (y i - x i))) by (intros; ring).
  eapply Rle_trans; [apply norm2_triangle|lra].
Qed.

(** A vector whose entries stay below a multiple of another's, each with tiny added. *)
Lemma norm2_room K u tiny x y : 0 <= u -> 0 <= tiny -> (forall i, (i < K)%nat -> Rabs (y i) <= u * (Rabs (x i) + tiny)) ->
  norm2 K y <= u * (norm2 K x + INR K * tiny).
Proof.
  intros U P H; eapply Rle_trans; [apply norm2_mono; exact H|].
  rewrite norm2_scale, Rabs_pos_eq by exact U; apply Rmult_le_compat_l; [exact U|].
  eapply Rle_trans; [apply norm2_triangle|]; rewrite norm2_abs; apply Rplus_le_compat_l, norm2_const, P.
Qed.

Lemma norm2_near_error K u tiny x y : 0 <= u -> 0 <= tiny -> (forall i, (i < K)%nat -> near u tiny (x i) (y i)) ->
  norm2 K (fun i => y i - x i) <= u * (norm2 K x + INR K * tiny).
Proof. intros U P H; apply norm2_room; assumption. Qed.

Lemma pow_1_le u n : 0 <= u -> 1 <= (1 + u) ^ n.
Proof. intros U; apply pow_R1_Rle; lra. Qed.

(** Sums over a list of indices. *)
Definition lsum (f : nat -> R) (l : list nat) : R := fold_right Rplus 0 (map f l).

Lemma lsum_app f l m : lsum f (l ++ m) = lsum f l + lsum f m.
Proof. unfold lsum; induction l as [|i l IH]; cbn; [ring|rewrite IH; ring]. Qed.

Lemma lsum_permutation f l m : Permutation l m -> lsum f l = lsum f m.
Proof. unfold lsum; induction 1; cbn; lra. Qed.

Lemma lsum_seq f K : lsum f (seq 0 K) = rsum K f.
Proof.
  induction K as [|K IH]; [reflexivity|rewrite seq_S, lsum_app, IH; unfold lsum; cbn; lra].
Qed.

Lemma lsum_abs f tiny l : 0 <= tiny -> l <> nil -> Rabs (lsum f l) + tiny <= lsum (fun i => Rabs (f i) + tiny) l.
Proof.
  intros P; destruct l as [|i l]; [congruence|intros _; revert i].
  induction l as [|j l IH]; intros i; [unfold lsum; cbn; rewrite !Rplus_0_r; lra|].
  specialize (IH j); unfold lsum in *; cbn in *; pose proof (Rabs_triang (f i) (f j + fold_right Rplus 0 (map f l))); lra.
Qed.

Lemma summed_nonempty u tiny x y l d r : summed u tiny x y l d r -> l <> nil.
Proof. induction 1; try discriminate; intros E; apply app_eq_nil in E; tauto. Qed.

Lemma summed_depth u tiny x y l d r : summed u tiny x y l d r -> (d <= length l)%nat.
Proof.
  induction 1 as [| l m d e a b r Ha IHa Hb IHb |]; [cbn; lia| |cbn; lia].
  apply summed_nonempty in Ha; apply summed_nonempty in Hb; rewrite app_length.
  destruct l; [congruence|]; destruct m; [congruence|]; cbn in *; lia.
Qed.

(** One more addition: the errors so far and its own stay below a power that is at least one higher. *)
Lemma more u e A p n : 0 <= u -> 0 <= A -> (p < n)%nat -> e <= ((1 + u) ^ p - 1) * A ->
  (1 + u) * e + u * A <= ((1 + u) ^ n - 1) * A.
Proof.
  intros U P L E; assert ((1 + u) ^ S p <= (1 + u) ^ n) by (apply Rle_pow; [lra|lia]); cbn in *.
  assert ((1 + u) * e <= (1 + u) * (((1 + u) ^ p - 1) * A)) by (apply Rmult_le_compat_l; lra).
  assert (((1 + u) * (1 + u) ^ p - 1) * A <= ((1 + u) ^ n - 1) * A) by (apply Rmult_le_compat_r; lra); lra.
Qed.

Lemma summed_error u tiny x y l d r : 0 <= u -> 0 <= tiny -> summed u tiny x y l d r ->
  Rabs (r - lsum (fun i => x i * y i) l) <= ((1 + u) ^ d - 1) * lsum (fun i => Rabs (x i * y i) + tiny) l.
Proof.
  intros U P H; set (f := fun i => x i * y i); set (A := lsum (fun i => Rabs (x i * y i) + tiny)).
  assert (size : forall l d r, summed u tiny x y l d r -> Rabs (lsum f l) + tiny <= A l)
    by (intros; apply lsum_abs; [exact P|eapply summed_nonempty; eassumption]).
  induction H as [i r N|l m d e a b r Ha IHa Hb IHb N|i l d a r Ha IHa N].
  - unfold A, lsum; cbn; fold (f i); rewrite !Rplus_0_r; unfold near in N; fold (f i) in N; lra.
  - pose proof (size _ _ _ Ha) as Sa; pose proof (size _ _ _ Hb) as Sb.
    pose proof (Rabs_pos (lsum f l)); pose proof (Rabs_pos (lsum f m)).
    unfold A; rewrite !lsum_app; fold A.
    pose proof (abs_near _ _ _ (Rle_refl (Rabs (a - lsum f l)))) as Na.
    pose proof (abs_near _ _ _ (Rle_refl (Rabs (b - lsum f m)))) as Nb.
    apply (more _ _ _ _ (S (max d e)) U) in IHa; [|lra|lia].
    apply (more _ _ _ _ (S (max d e)) U) in IHb; [|lra|lia].
    replace (r - (lsum f l + lsum f m)) with ((r - (a + b)) + ((a - lsum f l) + (b - lsum f m))) by ring.
    eapply Rle_trans; [apply Rabs_triang|]; eapply Rle_trans; [apply Rplus_le_compat; [exact N|apply Rabs_triang]|].
    pose proof (Rabs_triang a b).
    assert (u * (Rabs (a + b) + tiny) <= u * (Rabs (a - lsum f l) + Rabs (b - lsum f m) + A l + A m))
      by (apply Rmult_le_compat_l; lra).
    fold (A l) (A m) in IHa, IHb; lra.
  - pose proof (size _ _ _ Ha) as Sa; pose proof (Rabs_pos (lsum f l)).
    pose proof (abs_near _ _ _ (Rle_refl (Rabs (a - lsum f l)))) as Na.
    apply (more _ _ _ _ (S d) U) in IHa; [|lra|lia]; fold (A l) in IHa.
    change (lsum f (i :: l)) with (f i + lsum f l); change (A (i :: l)) with (Rabs (f i) + tiny + A l).
    fold (f i) in N; unfold near in N.
    replace (r - (f i + lsum f l)) with ((r - (f i + a)) + (a - lsum f l)) by ring.
    eapply Rle_trans; [apply Rabs_triang|]; pose proof (Rabs_triang (f i) a); pose proof (Rabs_pos (f i)).
    assert (u * (Rabs (f i + a) + tiny) <= u * (Rabs (f i) + tiny + Rabs (a - lsum f l) + A l))
      by (apply Rmult_le_compat_l; lra).
    assert (((1 + u) ^ 1 - 1) * (Rabs (f i) + tiny) <= ((1 + u) ^ S d - 1) * (Rabs (f i) + tiny))
      by (apply Rmult_le_compat_r; [lra|apply Rplus_le_compat_r, Rle_pow; [lra|lia]]).
    lra.
Qed.

(** A computed inner product, with lengths. *)
Lemma computed_dot_error u tiny D K x y r : 0 <= u -> 0 <= tiny -> computed_dot u tiny D K x y r ->
  Rabs (r - dot K x y) <= ((1 + u) ^ D - 1) * (norm2 K x * norm2 K y + INR K * tiny).
Proof.
  intros U P (l & d & Pl & H & L); apply summed_error in H; [|exact U|exact P].
  rewrite !(lsum_permutation _ _ _ Pl), !lsum_seq, rsum_plus, rsum_const in H; fold (dot K x y) in H.
  pose proof (pow_1_le u d U); assert ((1 + u) ^ d <= (1 + u) ^ D) by (apply Rle_pow; [lra|exact L]).
  eapply Rle_trans; [exact H|]; apply Rmult_le_compat; [lra| |lra|].
  - apply Rplus_le_le_0_compat; [apply rsum_nonneg; intros; apply Rabs_pos|apply Rmult_le_pos; [apply pos_INR|exact P]].
  - apply Rplus_le_compat_r; eapply Rle_trans; [|apply abs_dot]; apply Req_le, rsum_ext; intros; apply Rabs_mult.
Qed.
