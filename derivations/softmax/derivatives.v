(** Derivatives of sums and of the softmax weights in one score. *)
Require Import Reals Lra Lia.
From Coquelicot Require Import Coquelicot.
From Attnproof.derivations Require Import finite_sums.
From Attnproof.derivations.softmax Require Import statements weights.
Open Scope R_scope.

Lemma changed_self s j i : changed s j (s j) i = s i.
Proof. unfold changed; destruct (Nat.eq_dec i j) as [->|]; reflexivity. Qed.

(** Only one term of the normaliser moves. *)
Lemma normaliser_changed n tau s j x : (j < n)%nat ->
  normaliser n tau (changed s j x) = normaliser n tau s - exp (s j / tau) + exp (x / tau).
Proof.
  unfold normaliser; induction n as [|n IH]; intros Hj; [lia|cbn [rsum]].
  destruct (Nat.eq_dec j n) as [->|Hne].
  - rewrite (rsum_ext n _ (fun i => exp (s i / tau))).
    + unfold changed at 1; destruct (Nat.eq_dec n n); [lra|lia].
    + intros i Hi; unfold changed; destruct (Nat.eq_dec i n); [lia|reflexivity].
  - rewrite IH by lia; unfold changed at 1; destruct (Nat.eq_dec n j); [lia|lra].
Qed.

Lemma normaliser_derive n tau s j : (j < n)%nat -> tau <> 0 ->
  is_derive (fun x => normaliser n tau (changed s j x)) (s j) (exp (s j / tau) / tau).
Proof.
  intros Hj Ht.
  apply is_derive_ext with (f := fun x => normaliser n tau s - exp (s j / tau) + exp (x / tau)).
  - intros x; symmetry; apply normaliser_changed, Hj.
  - auto_derive; [exact I|unfold Rdiv; ring].
Qed.

Lemma normaliser_changed_self n tau s j :
  normaliser n tau (changed s j (s j)) = normaliser n tau s.
Proof. apply rsum_ext; intros i _; rewrite changed_self; reflexivity. Qed.

Lemma weight_derive n tau s i j : (0 < n)%nat -> (j < n)%nat -> 0 < tau ->
  is_derive (fun x => weight n tau (changed s j x) i) (s j) (hessian n tau s i j).
Proof.
  intros Hn Hj Ht; pose proof (normaliser_pos n tau s Hn) as Z.
  pose proof (normaliser_derive n tau s j Hj (Rgt_not_eq _ _ Ht)) as D.
  assert (E : is_derive (fun x => exp (changed s j x i / tau)) (s j) (delta i j * exp (s i / tau) / tau)).
  { unfold changed, delta; destruct (Nat.eq_dec i j) as [->|Hne].
    - auto_derive; [exact I|unfold Rdiv; ring].
    - replace (0 * exp (s i / tau) / tau) with 0 by (field; lra).
      apply @is_derive_const. }
  pose proof (is_derive_div _ _ _ _ _ E D) as Q; cbv beta in Q.
  rewrite normaliser_changed_self, changed_self in Q.
  replace (hessian n tau s i j) with
    ((delta i j * exp (s i / tau) / tau * normaliser n tau s - exp (s i / tau) * (exp (s j / tau) / tau))
      / normaliser n tau s ^ 2).
  - apply Q; lra.
  - unfold hessian, weight; field; lra.
Qed.

Lemma rsum_derive n (f : nat -> R -> R) x d :
  (forall i, (i < n)%nat -> is_derive (f i) x (d i)) ->
  is_derive (fun y => rsum n (fun i => f i y)) x (rsum n d).
Proof.
  induction n as [|n IH]; simpl; intros H; [apply @is_derive_const|].
  apply @is_derive_plus; [apply IH; intros i Hi; apply H; lia|apply H; lia].
Qed.

(** The sum against a unit vector picks one entry. *)
Lemma rsum_delta n f j : (j < n)%nat -> rsum n (fun i => f i * delta i j) = f j.
Proof.
  unfold delta; induction n as [|n IH]; intros Hj; [lia|cbn [rsum]].
  destruct (Nat.eq_dec n j) as [->|Hne].
  - rewrite (rsum_ext j _ (fun _ => 0)), rsum_const; [lra|].
    intros i Hi; destruct (Nat.eq_dec i j); [lia|lra].
  - rewrite IH by lia; lra.
Qed.
