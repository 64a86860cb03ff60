(** Online softmax: (m, l, o) triples form a commutative semigroup, and every tiling gives softmax. *)
Require Import Reals List Permutation Lra Lia.
From Attnproof.derivations Require Import finite_sums.
From Attnproof.derivations.flash Require Import statements.
Open Scope R_scope.

Definition sum (f : nat -> R) (l : list nat) : R := fold_right (fun j rest => f j + rest) 0 l.

Lemma sum_app f a b : sum f (a ++ b) = sum f a + sum f b.
Proof. induction a as [|x a IH]; simpl; [lra|rewrite IH; lra]. Qed.

Lemma sum_permutation f a b : Permutation a b -> sum f a = sum f b.
Proof. induction 1; simpl; lra. Qed.

Lemma sum_seq f n : sum f (seq 0 n) = rsum n f.
Proof.
  induction n as [|n IH]; [reflexivity|].
  rewrite seq_S, sum_app, IH; simpl; lra.
Qed.

Lemma rescale x a b : exp x * exp (a - b) = exp (x + a - b).
Proof. rewrite <- exp_plus; f_equal; ring. Qed.

(** Whatever the reference, e^m l and e^m o are the plain sums. *)
Lemma value_sums s v t : let '(m, l, o) := value s v t in
  exp m * l = sum (fun j => exp (s j)) (tokens t) /\
  exp m * o = sum (fun j => exp (s j) * v j) (tokens t) /\ 0 < l.
Proof.
  induction t as [j m|a IHa b IHb]; simpl.
  - rewrite <- Rmult_assoc, <- exp_plus; replace (m + (s j - m)) with (s j) by ring.
    repeat split; [ring|ring|apply exp_pos].
  - destruct (value s v a) as [[m1 l1] o1], (value s v b) as [[m2 l2] o2]; simpl.
    destruct IHa as (A1 & A2 & A3), IHb as (B1 & B2 & B3); set (m := Rmax m1 m2).
    assert (E : forall x y, exp m * (y * exp (x - m)) = exp x * y).
    { intros x y; replace (exp m * (y * exp (x - m))) with (y * (exp m * exp (x - m))) by ring.
      rewrite <- exp_plus; replace (m + (x - m)) with x by ring; ring. }
    rewrite !Rmult_plus_distr_l, !E, !sum_app, A1, A2, B1, B2.
    repeat split; pose proof (exp_pos (m1 - m)); pose proof (exp_pos (m2 - m)); nra.
Qed.

Theorem online_softmax_proof : online_softmax.
Proof.
  refine (conj _ (conj _ _)).
  - intros [[m1 l1] o1] [[m2 l2] o2]; simpl; rewrite (Rmax_comm m2 m1); f_equal; [f_equal|]; ring.
  - intros [[m1 l1] o1] [[m2 l2] o2] [[m3 l3] o3]; simpl.
    set (m12 := Rmax m1 m2); set (m23 := Rmax m2 m3).
    assert (M : Rmax m12 m3 = Rmax m1 m23) by (unfold m12, m23; apply eq_sym, Rmax_assoc).
    rewrite <- M; set (m := Rmax m12 m3).
    assert (E : forall x y z, x * exp (y - z) * exp (z - m) = x * exp (y - m)).
    { intros x y z; rewrite Rmult_assoc, <- exp_plus; do 2 f_equal; ring. }
    f_equal; [f_equal|]; rewrite !Rmult_plus_distr_r, !E; ring.
  - intros n s v t P; pose proof (value_sums s v t) as V.
    destruct (value s v t) as [[m l] o]; destruct V as (L & O & Pos).
    rewrite (sum_permutation _ _ _ P), sum_seq in L; rewrite (sum_permutation _ _ _ P), sum_seq in O.
    rewrite <- L, <- O; field; pose proof (exp_pos m); split; lra.
Qed.
