(** A query along the longest key sees every collision. *)
Require Import Reals Lra Lia.
From Attnproof.derivations Require Import finite_sums.
From Attnproof.counterexamples.collision Require statements.
Open Scope R_scope.
Import Attnproof.counterexamples.collision.statements (seen, visible).

Lemma positive_gap K (x y : nat -> R) : (exists c, (c < K)%nat /\ x c <> y c) ->
  dot K y y <= dot K x x -> 0 < dot K x x - dot K x y.
Proof.
  intros (c & Hc & N) L.
  assert (D : 0 < dot K (fun i => x i - y i) (fun i => x i - y i)).
  { apply Rlt_le_trans with ((x c - y c) * (x c - y c)); [apply Rlt_0_sqr; lra|].
    apply (rsum_term_le K (fun i => (x i - y i) * (x i - y i))); [intros i _; apply Rle_0_sqr|exact Hc]. }
  assert (E : dot K (fun i => x i - y i) (fun i => x i - y i) = dot K x x - 2 * dot K x y + dot K y y).
  { unfold dot; rewrite <- rsum_scal, <- rsum_minus, <- rsum_plus; apply rsum_ext; intros; ring. }
  lra.
Qed.

(** The term at m against the sum of the others. *)
Lemma single_out n m f : (m < n)%nat -> rsum n f = f m + rsum n (fun j => if Nat.eq_dec j m then 0 else f j).
Proof.
  induction n as [|n IH]; intros H; [lia|cbn [rsum]]; destruct (Nat.eq_dec n m) as [->|N].
  - rewrite (rsum_ext m (fun j => if Nat.eq_dec j m then 0 else f j) f); [ring|].
    intros j Hj; destruct (Nat.eq_dec j m); [lia|reflexivity].
  - rewrite IH by lia; ring.
Qed.

Lemma rsum_abs n f : Rabs (rsum n f) <= rsum n (fun j => Rabs (f j)).
Proof.
  induction n as [|n IH]; simpl; [rewrite Rabs_R0; lra|].
  pose proof (Rabs_triang (rsum n f) (f n)); lra.
Qed.

Section Seen.
Variables (n K : nat) (key : nat -> nat -> R) (z : nat -> R) (m : nat).
Hypotheses (Hm : (m < n)%nat) (Zm : z m <> 0).
Let lead j := dot K (key m) (key m) - dot K (key m) (key j).
Let rest := rsum n (fun j => if Nat.eq_dec j m then 0 else Rabs (z j)).

Lemma dominates delta lambda : 0 < delta -> 0 <= lambda ->
  (forall j, (j < n)%nat -> j <> m -> z j <> 0 -> delta <= lead j) ->
  rest * exp (- (lambda * delta)) < Rabs (z m) -> seen n K key z lambda m <> 0.
Proof.
  intros Hd Hl H B E; set (top := exp (lambda * dot K (key m) (key m))).
  assert (T : 0 < top) by apply exp_pos.
  unfold seen in E; rewrite (single_out n m) in E by exact Hm; fold top in E.
  set (others := rsum n _) in E.
  assert (O : Rabs others <= rest * exp (- (lambda * delta)) * top).
  { apply Rle_trans with (1 := rsum_abs _ _); unfold rest; rewrite !rsum_mult_r; apply rsum_le; intros j Hj.
    destruct (Nat.eq_dec j m) as [->|N]; [rewrite Rabs_R0; lra|].
    destruct (Req_dec (z j) 0) as [Z0|Z0]; [rewrite Z0, Rmult_0_l, Rabs_R0; lra|].
    rewrite Rabs_mult, (Rabs_right (exp _)) by (left; apply exp_pos); rewrite Rmult_assoc.
    apply Rmult_le_compat_l; [apply Rabs_pos|]; unfold top; rewrite <- exp_plus.
    specialize (H j Hj N Z0); unfold lead in H.
    assert (L : lambda * dot K (key m) (key j) <= - (lambda * delta) + lambda * dot K (key m) (key m)) by nra.
    destruct L as [L|L]; [left; apply exp_increasing, L|right; f_equal; exact L]. }
  assert (A : Rabs (z m * top) = Rabs others) by (replace (z m * top) with (- others) by lra; apply Rabs_Ropp).
  rewrite Rabs_mult, (Rabs_right top) in A by lra; nra.
Qed.
End Seen.

Theorem visible_proof : visible.
Proof.
  intros n K key z m Hm Zm D Long lead rest.
  assert (Lead : forall j, (j < n)%nat -> j <> m -> z j <> 0 -> 0 < lead j).
  { intros j Hj N Zj; apply positive_gap; [apply D; congruence||lia|apply Long; assumption]. }
  assert (P : 0 < Rabs (z m)) by (apply Rabs_pos_lt, Zm).
  assert (R0 : 0 <= rest).
  { apply rsum_nonneg; intros j _; destruct (Nat.eq_dec j m); [lra|apply Rabs_pos]. }
  assert (Crit : forall delta lambda, 0 < delta -> 0 <= lambda ->
    (forall j, (j < n)%nat -> j <> m -> z j <> 0 -> delta <= lead j) ->
    (rest = 0 \/ ln (rest / Rabs (z m)) < lambda * delta) -> seen n K key z lambda m <> 0).
  { intros delta lambda Hd Hl H C; apply (dominates n K key z m Hm delta lambda Hd Hl H); fold rest.
    destruct C as [C|C]; [rewrite C, Rmult_0_l; exact P|].
    destruct R0 as [R0|R0]; [|rewrite <- R0, Rmult_0_l; exact P].
    assert (Q : rest / Rabs (z m) < exp (lambda * delta)).
    { rewrite <- (exp_ln (rest / Rabs (z m))) by (apply Rdiv_lt_0_compat; assumption); apply exp_increasing, C. }
    apply (Rmult_lt_compat_r (Rabs (z m))) in Q; [|exact P].
    unfold Rdiv in Q; rewrite Rmult_assoc, Rinv_l, Rmult_1_r in Q by lra.
    rewrite exp_Ropp; pose proof (exp_pos (lambda * delta)) as X.
    apply (Rmult_lt_reg_r (exp (lambda * delta))); [exact X|].
    rewrite Rmult_assoc, Rinv_l by lra; lra. }
  refine (conj Lead (conj Crit _)).
  assert (low : forall a, (a <= n)%nat -> exists delta, 0 < delta /\
    forall j, (j < a)%nat -> j <> m -> z j <> 0 -> delta <= lead j).
  { induction a as [|a IH]; intros Ha; [exists 1; split; [lra|intros; lia]|].
    destruct IH as (d & Hd & L); [lia|]; destruct (Nat.eq_dec a m) as [E|N].
    - exists d; split; [exact Hd|intros j Hj Nj; apply L; [lia|exact Nj]].
    - destruct (Req_dec (z a) 0) as [Z0|Z0].
      + exists d; split; [exact Hd|intros j Hj Nj Zj; apply L; [|exact Nj|exact Zj]].
        destruct (Nat.eq_dec j a) as [->|]; [contradiction|lia].
      + exists (Rmin d (lead a)); split; [apply Rmin_pos; [exact Hd|apply Lead; [lia|exact N|exact Z0]]|].
        intros j Hj Nj Zj; destruct (Nat.eq_dec j a) as [->|]; [apply Rmin_r|].
        apply Rle_trans with d; [apply Rmin_l|apply L; [lia|exact Nj|exact Zj]]. }
  destruct (low n (le_n n)) as (d & Hd & L); set (x := ln (rest / Rabs (z m))).
  exists ((Rmax x 0 + 1) / d); assert (0 <= Rmax x 0) by apply Rmax_r; split.
  - left; apply Rdiv_lt_0_compat; lra.
  - apply (Crit d); [exact Hd|left; apply Rdiv_lt_0_compat; lra|exact L|right].
    replace ((Rmax x 0 + 1) / d * d) with (Rmax x 0 + 1) by (field; lra).
    fold x; pose proof (Rmax_l x 0); lra.
Qed.
