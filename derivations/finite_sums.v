(** Lemmas on finite sums of reals, shared by the proofs about weights. *)
Require Import Reals Lra Lia.
From Attnproof.derivations Require Export vocabulary.
Open Scope R_scope.

Lemma rsum_ext n f g : (forall i, (i < n)%nat -> f i = g i) -> rsum n f = rsum n g.
Proof.
  induction n as [|n IH]; simpl; intros H; [reflexivity|].
  rewrite (H n) by lia; rewrite IH; [reflexivity|intros i Hi; apply H; lia].
Qed.

Lemma rsum_plus n f g : rsum n (fun i => f i + g i) = rsum n f + rsum n g.
Proof. induction n as [|n IH]; simpl; [lra|rewrite IH; lra]. Qed.

Lemma rsum_minus n f g : rsum n (fun i => f i - g i) = rsum n f - rsum n g.
Proof. induction n as [|n IH]; simpl; [lra|rewrite IH; lra]. Qed.

Lemma rsum_scal n c f : rsum n (fun i => c * f i) = c * rsum n f.
Proof. induction n as [|n IH]; simpl; [lra|rewrite IH; lra]. Qed.

Lemma rsum_const n c : rsum n (fun _ => c) = INR n * c.
Proof. induction n as [|n IH]; [simpl; lra|cbn [rsum]; rewrite IH, S_INR; lra]. Qed.

Lemma rsum_le n f g : (forall i, (i < n)%nat -> f i <= g i) -> rsum n f <= rsum n g.
Proof.
  induction n as [|n IH]; simpl; intros H; [lra|].
  assert (rsum n f <= rsum n g) by (apply IH; intros i Hi; apply H; lia).
  assert (f n <= g n) by (apply H; lia). lra.
Qed.

Lemma rsum_nonneg n f : (forall i, (i < n)%nat -> 0 <= f i) -> 0 <= rsum n f.
Proof.
  intros H; replace 0 with (rsum n (fun _ => 0)) by (rewrite rsum_const; lra).
  apply rsum_le; exact H.
Qed.

Lemma rsum_pos n f : (0 < n)%nat -> (forall i, (i < n)%nat -> 0 < f i) -> 0 < rsum n f.
Proof.
  destruct n as [|n]; intros Hn H; [lia|simpl].
  assert (0 <= rsum n f) by (apply rsum_nonneg; intros i Hi; left; apply H; lia).
  assert (0 < f n) by (apply H; lia). lra.
Qed.

Lemma rsum_term_le n f k :
  (forall i, (i < n)%nat -> 0 <= f i) -> (k < n)%nat -> f k <= rsum n f.
Proof.
  induction n as [|n IH]; simpl; intros H Hk; [lia|].
  assert (0 <= rsum n f) by (apply rsum_nonneg; intros i Hi; apply H; lia).
  destruct (Nat.eq_dec k n) as [->|Hne]; [lra|].
  assert (f k <= rsum n f) by (apply IH; [intros i Hi; apply H; lia|lia]).
  assert (0 <= f n) by (apply H; lia). lra.
Qed.

Lemma rsum_zero_all n f :
  (forall i, (i < n)%nat -> 0 <= f i) -> rsum n f = 0 -> forall i, (i < n)%nat -> f i = 0.
Proof.
  intros H E i Hi. assert (f i <= rsum n f) by (apply rsum_term_le; assumption).
  assert (0 <= f i) by (apply H; assumption). lra.
Qed.

Lemma rsum_mult_r n f c : rsum n f * c = rsum n (fun i => f i * c).
Proof. induction n as [|n IH]; simpl; [lra|rewrite <- IH; lra]. Qed.

Lemma rsum_swap n m (f : nat -> nat -> R) :
  rsum n (fun i => rsum m (fun j => f i j)) = rsum m (fun j => rsum n (fun i => f i j)).
Proof.
  induction n as [|n IH]; simpl.
  - symmetry; rewrite rsum_const; lra.
  - rewrite IH, <- rsum_plus; reflexivity.
Qed.
