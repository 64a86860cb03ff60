(** Euclidean lengths: triangle inequality, Cauchy and Schwarz, and what a step without rounding does to them. *)
Require Import Reals Lra Lia.
From Attnproof.derivations Require Export finite_sums.
From Attnproof.derivations.kernel Require Import statements.
Open Scope R_scope.

Lemma dot_self_nonneg K x : 0 <= dot K x x.
Proof. apply rsum_nonneg; intros; apply Rle_0_sqr. Qed.

Lemma norm2_nonneg K x : 0 <= norm2 K x.
Proof. apply sqrt_pos. Qed.

Lemma norm2_square K x : norm2 K x * norm2 K x = dot K x x.
Proof. apply sqrt_sqrt, dot_self_nonneg. Qed.

Lemma norm2_ext K x y : (forall i, (i < K)%nat -> x i = y i) -> norm2 K x = norm2 K y.
Proof. intros H; unfold norm2; f_equal; apply rsum_ext; intros i Hi; rewrite H by exact Hi; reflexivity. Qed.

Lemma norm2_mono K x y : (forall i, (i < K)%nat -> Rabs (x i) <= y i) -> norm2 K x <= norm2 K y.
Proof.
  intros H; apply sqrt_le_1_alt, rsum_le; intros i Hi; specialize (H i Hi).
  pose proof (Rabs_pos (x i)); replace (x i * x i) with (Rabs (x i) * Rabs (x i)) by (rewrite <- Rabs_mult; apply Rabs_pos_eq, Rle_0_sqr); nra.
Qed.

Lemma norm2_abs K x : norm2 K (fun i => Rabs (x i)) = norm2 K x.
Proof.
  unfold norm2; f_equal; apply rsum_ext; intros; rewrite <- Rabs_mult; apply Rabs_pos_eq, Rle_0_sqr.
Qed.

Lemma norm2_scale K c x : norm2 K (fun i => c * x i) = Rabs c * norm2 K x.
Proof.
  unfold norm2, dot; rewrite (rsum_ext K _ (fun i => (c * c) * (x i * x i))) by (intros; ring).
  rewrite rsum_scal, sqrt_mult by (apply Rle_0_sqr || apply dot_self_nonneg).
  f_equal; apply sqrt_Rsqr_abs.
Qed.

Lemma dot_combine K a b x y : dot K (fun i => a * x i + b * y i) (fun i => a * x i + b * y i)
  = a * a * dot K x x + 2 * a * b * dot K x y + b * b * dot K y y.
Proof. unfold dot; rewrite <- !rsum_scal, <- !rsum_plus; apply rsum_ext; intros; ring. Qed.

Lemma cauchy_schwarz_square K x y : dot K x y * dot K x y <= dot K x x * dot K y y.
Proof.
  pose proof (dot_self_nonneg K x) as X; pose proof (dot_self_nonneg K y) as Y; set (c := dot K x y).
  destruct X as [X|X].
  - pose proof (dot_self_nonneg K (fun i => - c * x i + dot K x x * y i)) as D; rewrite dot_combine in D; fold c in D.
    apply Rmult_le_reg_l with (dot K x x); [exact X|nra].
  - pose proof (dot_self_nonneg K (fun i => (- (dot K y y + 1)) * x i + c * y i)) as D.
    rewrite dot_combine, <- X in D; fold c in D; rewrite <- X.
    assert (0 <= c * c) by apply Rle_0_sqr; nra.
Qed.

Lemma cauchy_schwarz K x y : dot K x y <= norm2 K x * norm2 K y.
Proof.
  unfold norm2; rewrite <- sqrt_mult by apply dot_self_nonneg.
  eapply Rle_trans; [apply Rle_abs|]; rewrite <- sqrt_Rsqr_abs; apply sqrt_le_1_alt, cauchy_schwarz_square.
Qed.

Lemma abs_dot K x y : dot K (fun i => Rabs (x i)) (fun i => Rabs (y i)) <= norm2 K x * norm2 K y.
Proof. rewrite <- (norm2_abs K x), <- (norm2_abs K y); apply cauchy_schwarz. Qed.

Lemma dot_le_abs K x y : Rabs (dot K x y) <= dot K (fun i => Rabs (x i)) (fun i => Rabs (y i)).
Proof.
  induction K as [|K IH]; cbn; [rewrite Rabs_R0; lra|].
  eapply Rle_trans; [apply Rabs_triang|]; rewrite Rabs_mult; apply Rplus_le_compat_r, IH.
Qed.

Lemma abs_dot_le K x y : Rabs (dot K x y) <= norm2 K x * norm2 K y.
Proof. eapply Rle_trans; [apply dot_le_abs|apply abs_dot]. Qed.

Lemma norm2_triangle K x y : norm2 K (fun i => x i + y i) <= norm2 K x + norm2 K y.
Proof.
  pose proof (norm2_nonneg K x); pose proof (norm2_nonneg K y); pose proof (cauchy_schwarz K x y).
  rewrite <- (sqrt_square (norm2 K x + norm2 K y)) by lra; apply sqrt_le_1_alt.
  replace (dot K (fun i => x i + y i) (fun i => x i + y i)) with (dot K (fun i => 1 * x i + 1 * y i) (fun i => 1 * x i + 1 * y i))
    by (apply rsum_ext; intros; ring).
  rewrite dot_combine, <- !norm2_square; lra.
Qed.

Lemma norm2_const K c : 0 <= c -> norm2 K (fun _ => c) <= INR K * c.
Proof.
  intros C; unfold norm2, dot; rewrite rsum_const; rewrite <- (sqrt_square (INR K * c)) by (pose proof (pos_INR K); nra).
  apply sqrt_le_1_alt; destruct K as [|K]; [simpl; lra|].
  assert (1 <= INR (S K)) by (rewrite S_INR; pose proof (pos_INR K); lra).
  assert (0 <= c * c) by nra; nra.
Qed.

(** Decays do not lengthen beyond the largest; erasing lengthens at most g times. *)
Lemma norm2_decay K a alpha s : (0 < K)%nat -> (forall i, (i < K)%nat -> 0 <= a i <= alpha) ->
  norm2 K (fun i => a i * s i) <= alpha * norm2 K s.
Proof.
  intros P H; assert (A : 0 <= alpha) by (specialize (H O P); lra).
  replace (alpha * norm2 K s) with (norm2 K (fun i => alpha * Rabs (s i)))
    by (rewrite norm2_scale, norm2_abs, Rabs_pos_eq by exact A; reflexivity).
  apply norm2_mono; intros i Hi; specialize (H i Hi); pose proof (Rabs_pos (s i)).
  rewrite Rabs_mult, (Rabs_pos_eq (a i)) by lra; nra.
Qed.

Lemma norm2_erase K k beta g x : 0 <= beta -> 1 <= g -> beta * dot K k k <= 1 + g ->
  norm2 K (fun i => x i + beta * k i * - dot K k x) <= g * norm2 K x.
Proof.
  intros B G H; set (c := dot K k x); pose proof (norm2_nonneg K x) as P.
  rewrite <- (sqrt_square (g * norm2 K x)) by nra; apply sqrt_le_1_alt.
  replace (dot K (fun i => x i + beta * k i * - c) (fun i => x i + beta * k i * - c))
    with (dot K (fun i => (- (beta * c)) * k i + 1 * x i) (fun i => (- (beta * c)) * k i + 1 * x i))
    by (apply rsum_ext; intros; ring).
  rewrite dot_combine; fold c; replace (g * norm2 K x * (g * norm2 K x)) with (g * g * dot K x x) by (rewrite <- norm2_square; ring).
  assert (CS : c * c <= dot K k k * dot K x x).
  { pose proof (abs_dot_le K k x) as D; fold c in D; pose proof (Rabs_pos c).
    rewrite <- (norm2_square K k), <- (norm2_square K x); replace (c * c) with (Rabs c * Rabs c) by (rewrite <- Rabs_mult; apply Rabs_pos_eq, Rle_0_sqr); nra. }
  set (y := beta * dot K k k) in *; pose proof (dot_self_nonneg K k); pose proof (dot_self_nonneg K x) as X.
  assert (Y : 0 <= y) by (unfold y; apply Rmult_le_pos; assumption).
  replace (- (beta * c) * - (beta * c) * dot K k k + 2 * - (beta * c) * 1 * c + 1 * 1 * dot K x x)
    with (dot K x x + (y - 2) * (beta * (c * c))) by (unfold y; ring).
  assert (BC : 0 <= beta * (c * c) <= y * dot K x x).
  { split; [apply Rmult_le_pos; [exact B|apply Rle_0_sqr]|unfold y; rewrite Rmult_assoc; apply Rmult_le_compat_l; assumption]. }
  set (P2 := beta * (c * c)) in *; set (X2 := dot K x x) in *.
  assert (GX : (1 - 1) * X2 <= (g * g - 1) * X2) by (apply Rmult_le_compat_r; [exact X|nra]).
  destruct (Rle_or_lt y 2).
  - assert (0 <= (2 - y) * P2) by (apply Rmult_le_pos; lra); lra.
  - assert ((y - 2) * P2 <= (y - 2) * (y * X2)) by (apply Rmult_le_compat_l; lra).
    assert (((y - 2) * y) * X2 <= (g * g - 1) * X2) by (apply Rmult_le_compat_r; [exact X|nra]); lra.
Qed.
