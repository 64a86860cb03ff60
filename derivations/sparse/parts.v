(** Sums over sets of tokens. *)
Require Import Reals Bool Lra Lia.
From Attnproof.derivations Require Import finite_sums.
From Attnproof.derivations.sparse Require Import statements.
Open Scope R_scope.

Lemma part_split n keep f : part n keep f + part n (others keep) f = rsum n f.
Proof.
  unfold part, others; rewrite <- rsum_plus; apply rsum_ext; intros j _; destruct (keep j); simpl; ring.
Qed.

Lemma part_ext n keep f g : (forall j, (j < n)%nat -> keep j = true -> f j = g j) ->
  part n keep f = part n keep g.
Proof. intros H; apply rsum_ext; intros j Hj; destruct (keep j) eqn:E; [apply H; assumption|reflexivity]. Qed.

Lemma part_scal n keep c f : part n keep (fun j => c * f j) = c * part n keep f.
Proof.
  unfold part; rewrite <- rsum_scal; apply rsum_ext; intros j _; destruct (keep j); ring.
Qed.

Lemma part_le n keep f g : (forall j, (j < n)%nat -> keep j = true -> f j <= g j) ->
  part n keep f <= part n keep g.
Proof. intros H; apply rsum_le; intros j Hj; destruct (keep j) eqn:E; [apply H; assumption|lra]. Qed.

Lemma part_nonneg n keep f : (forall j, (j < n)%nat -> 0 <= f j) -> 0 <= part n keep f.
Proof. intros H; apply rsum_nonneg; intros j Hj; destruct (keep j); [apply H, Hj|lra]. Qed.

Lemma part_const n keep c : part n keep (fun _ => c) = INR (size n keep) * c.
Proof.
  unfold part; induction n as [|n IH]; [simpl; ring|cbn [rsum size]].
  rewrite IH, plus_INR; destruct (keep n); simpl; ring.
Qed.

Lemma part_pos n keep f : (0 < size n keep)%nat -> (forall j, (j < n)%nat -> 0 < f j) -> 0 < part n keep f.
Proof.
  unfold part; induction n as [|n IH]; cbn [rsum size]; intros Hs H; [lia|].
  assert (N : 0 <= rsum n (fun j => if keep j then f j else 0))
    by (apply rsum_nonneg; intros j Hj; destruct (keep j); [left; apply H; lia|lra]).
  destruct (keep n); [assert (0 < f n) by (apply H; lia); lra|].
  rewrite Rplus_0_r; apply IH; [lia|intros j Hj; apply H; lia].
Qed.

Lemma size_split n keep : (size n keep + size n (others keep) = n)%nat.
Proof. induction n as [|n IH]; simpl; [reflexivity|unfold others at 2; destruct (keep n); simpl; lia]. Qed.

(** A bound between every member of one set and every member of another of the same size carries over to
    the sums: count all pairs. *)
Lemma part_compare n A B c f g : size n A = size n B -> (0 < c) ->
  (forall i j, (i < n)%nat -> (j < n)%nat -> A i = true -> B j = true -> f i <= c * g j) ->
  (forall j, (j < n)%nat -> 0 <= g j) -> part n A f <= c * part n B g.
Proof.
  intros Hs Hc H G; destruct (Nat.eq_dec (size n B) 0) as [Z|Z].
  - assert (none : forall k, (k < n)%nat -> A k = true -> False).
    { rewrite Z in Hs; clear - Hs; induction n as [|n IH]; simpl in *; intros k Hk Ak; [lia|].
      destruct (Nat.eq_dec k n) as [->|Hne]; [rewrite Ak in Hs; lia|apply (IH ltac:(lia) k); [lia|exact Ak]]. }
    assert (E : part n A f = 0).
    { rewrite (part_ext n A f (fun _ => 0)), part_const; [ring|].
      intros j Hj Aj; exfalso; exact (none j Hj Aj). }
    rewrite E; apply Rmult_le_pos; [lra|apply part_nonneg, G].
  - assert (P : 0 < INR (size n B)) by (apply lt_0_INR; lia).
    apply (Rmult_le_reg_l (INR (size n B))); [exact P|].
    rewrite <- part_scal, <- Hs; rewrite <- (part_const n A (c * part n B g)).
    apply part_le; intros i Hi Ai; rewrite Hs, <- part_const, <- part_scal.
    apply part_le; intros j Hj Bj; apply H; assumption.
Qed.
