(** One state cannot serve two futures. *)
Require Import Reals Lra Lia.
From Attnproof.derivations Require Import finite_sums.
From Attnproof.derivations.gate Require Import statements.
Open Scope R_scope.

Theorem causal_proof : causal.
Proof.
  intros n w1 w2; split.
  - intros s; set (a := distance n s w1); set (b := distance n s w2).
    assert (A : 0 <= a) by apply sqrt_pos; assert (B : 0 <= b) by apply sqrt_pos.
    assert (sq : forall x y, distance n x y * distance n x y = dot n (fun i => x i - y i) (fun i => x i - y i)).
    { intros x y; apply sqrt_sqrt, rsum_nonneg; intros i _; pose proof (pow2_ge_0 (x i - y i)); lra. }
    assert (P : distance n w1 w2 * distance n w1 w2 <= 2 * (a * a) + 2 * (b * b)).
    { unfold a, b; rewrite !sq; unfold dot; rewrite <- !rsum_scal, <- rsum_plus; apply rsum_le; intros i _.
      pose proof (pow2_ge_0 ((s i - w1 i) + (s i - w2 i))); lra. }
    assert (D : 0 <= distance n w1 w2) by apply sqrt_pos.
    unfold Rmax; destruct (Rle_dec a b); nra.
  - intros middle; assert (E : forall x y : nat -> R, distance n x y = distance n y x).
    { intros x y; unfold distance, dot; f_equal; apply rsum_ext; intros; ring. }
    assert (M : forall w, (forall i, (middle i - w i) * (middle i - w i) = (/ 2) ^ 2 * ((w1 i - w2 i) * (w1 i - w2 i))) ->
      distance n middle w = distance n w1 w2 / 2).
    { intros w H; unfold distance, dot; rewrite (rsum_ext n _ _ (fun i _ => H i)), rsum_scal, sqrt_mult_alt by apply pow2_ge_0.
      rewrite sqrt_pow2 by lra; unfold Rdiv; ring. }
    split; apply M; intros i; unfold middle; field.
Qed.
