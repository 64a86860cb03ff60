(** The spectral norm of I - eta k j^T for unit vectors k and j that differ. *)
Require Import Reals Lra Lia.
From Attnproof.derivations Require Import finite_sums.
From Attnproof.derivations.gdn2 Require Import statements.
Open Scope R_scope.

Lemma dot_linear K p q r x y z w : dot K (fun i => p * x i + q * y i + r * z i) w
  = p * dot K x w + q * dot K y w + r * dot K z w.
Proof.
  unfold dot; rewrite <- !rsum_scal, <- !rsum_plus; apply rsum_ext; intros; ring.
Qed.

Lemma dot_sym K x y : dot K x y = dot K y x.
Proof. apply rsum_ext; intros; ring. Qed.

Lemma dot_square K p q r x y z : let u i := p * x i + q * y i + r * z i in
  dot K u u = p ^ 2 * dot K x x + q ^ 2 * dot K y y + r ^ 2 * dot K z z
    + 2 * p * q * dot K x y + 2 * p * r * dot K x z + 2 * q * r * dot K y z.
Proof.
  intros u; unfold u at 1; rewrite dot_linear, !(dot_sym K _ u); unfold u; rewrite !dot_linear.
  rewrite (dot_sym K y x), (dot_sym K z x), (dot_sym K z y); ring.
Qed.

Theorem norm_proof : norm.
Proof.
  intros K eta k j He Kk Jj (i0 & Hi0 & D) N longer; set (c := dot K k j).
  assert (square : forall x, longer x = dot K x x - 2 * eta * dot K k x * dot K j x + eta ^ 2 * dot K j x ^ 2).
  { intros x; unfold longer, transition; set (a := dot K j x).
    assert (E : dot K (fun i => x i - eta * (k i * a)) (fun i => x i - eta * (k i * a))
      = dot K (fun i => 1 * x i + - eta * a * k i + 0 * k i) (fun i => 1 * x i + - eta * a * k i + 0 * k i))
      by (apply rsum_ext; intros; ring).
    rewrite E, dot_square, Kk, (dot_sym K x k); ring. }
  assert (C : c < 1).
  { assert (0 < dot K (fun i => 1 * k i + -1 * j i + 0 * j i) (fun i => 1 * k i + -1 * j i + 0 * j i)).
    { apply Rlt_le_trans with ((1 * k i0 + -1 * j i0 + 0 * j i0) * (1 * k i0 + -1 * j i0 + 0 * j i0)); [apply Rlt_0_sqr; lra|].
      apply (rsum_term_le K (fun i => (1 * k i + -1 * j i + 0 * j i) * (1 * k i + -1 * j i + 0 * j i))); [intros; apply Rle_0_sqr|exact Hi0]. }
    rewrite dot_square, Kk, Jj in H; fold c in H; lra. }
  set (root := sqrt (eta ^ 2 - 4 * eta * c + 4)).
  assert (inside : (2 - eta) ^ 2 < eta ^ 2 - 4 * eta * c + 4) by nra.
  assert (R2 : root * root = eta ^ 2 - 4 * eta * c + 4) by (apply sqrt_sqrt; pose proof (pow2_ge_0 (2 - eta)); lra).
  assert (R0 : 0 <= root) by apply sqrt_pos.
  assert (N1 : 1 < N) by (unfold N, stated; fold c; fold root; nra).
  assert (equation : N * N = eta * N + 1 - eta * c) by (unfold N, stated; fold c; fold root; nra).
  assert (sos : forall x, (N - c) * (N ^ 2 * dot K x x - longer x) = eta *
    dot K (fun i => (N - c) * x i + - (N * dot K j x) * j i + dot K j x * k i)
          (fun i => (N - c) * x i + - (N * dot K j x) * j i + dot K j x * k i)).
  { intros x; rewrite square, dot_square, Kk, Jj, (dot_sym K x j), (dot_sym K x k), (dot_sym K j k); fold c.
    set (a := dot K j x); set (b := dot K k x); set (X := dot K x x).
    replace (N ^ 2) with (eta * N + 1 - eta * c) by (rewrite <- equation; ring).
    assert (Z : eta * a ^ 2 * (N * N - (eta * N + 1 - eta * c)) = 0) by (rewrite equation; ring).
    assert (Y : eta * ((N - c) ^ 2 * X + (- (N * a)) ^ 2 * 1 + a ^ 2 * 1 + 2 * (N - c) * - (N * a) * a
        + 2 * (N - c) * a * b + 2 * - (N * a) * a * c) - (N - c) * ((eta * N + 1 - eta * c) * X - (X - 2 * eta * b * a + eta ^ 2 * a ^ 2))
      = - (eta * a ^ 2 * (N * N - (eta * N + 1 - eta * c)))) by ring.
    lra. }
  refine (conj N1 (conj _ _)).
  - intros x; apply Rnot_lt_le; intros L; pose proof (sos x) as S.
    assert (0 <= dot K (fun i => (N - c) * x i + - (N * dot K j x) * j i + dot K j x * k i)
      (fun i => (N - c) * x i + - (N * dot K j x) * j i + dot K j x * k i)) by (apply rsum_nonneg; intros; apply Rle_0_sqr).
    nra.
  - exists (fun i => N * j i + -1 * k i + 0 * k i); set (x := fun i => N * j i + -1 * k i + 0 * k i).
    assert (X : dot K x x = N ^ 2 - 2 * N * c + 1) by (unfold x; rewrite dot_square, Kk, Jj, (dot_sym K j k); fold c; ring).
    assert (A : dot K j x = N - c) by (rewrite dot_sym; unfold x; rewrite dot_linear, Jj; fold c; ring).
    assert (B : dot K k x = N * c - 1) by (rewrite dot_sym; unfold x; rewrite dot_linear, Kk, (dot_sym K j k); fold c; ring).
    split; [rewrite X; nra|rewrite square, X, A, B].
    apply Rminus_diag_uniq.
    replace (N ^ 2 - 2 * N * c + 1 - 2 * eta * (N * c - 1) * (N - c) + eta ^ 2 * (N - c) ^ 2
      - N ^ 2 * (N ^ 2 - 2 * N * c + 1))
      with ((- N ^ 2 + (2 * c - eta) * N + c * eta - 1) * (N * N - (eta * N + 1 - eta * c))) by ring.
    rewrite equation; ring.
Qed.
