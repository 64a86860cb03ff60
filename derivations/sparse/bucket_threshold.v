(** A histogram of the scores certifies what may be dropped. *)
Require Import Reals Bool Lra Lia PeanoNat.
From Attnproof.derivations Require Import finite_sums.
From Attnproof.derivations.softmax Require Import statements weights.
From Attnproof.derivations.sparse Require Import statements parts indexer_regret kl_chain.
Open Scope R_scope.

(** A sum over buckets of count times a number is the sum over tokens of their bucket's number. *)
Lemma by_bucket n B bucket (keep : nat -> bool) (f : nat -> R) : (forall j, (j < n)%nat -> (bucket j < B)%nat) ->
  rsum B (fun b => if keep b then count n bucket b * f b else 0) = part n (fun j => keep (bucket j)) (fun j => f (bucket j)).
Proof.
  intros H; unfold part; rewrite <- (sum_over_blocks n B bucket) by exact H; apply rsum_ext; intros b _.
  unfold count; rewrite <- part_const; unfold part; destruct (keep b) eqn:E.
  - apply rsum_ext; intros j _; destruct (Nat.eqb_spec (bucket j) b) as [<-|]; [rewrite E; reflexivity|reflexivity].
  - rewrite (rsum_ext n _ (fun _ => 0)), rsum_const; [ring|].
    intros j _; destruct (Nat.eqb_spec (bucket j) b) as [<-|]; [rewrite E; reflexivity|reflexivity].
Qed.

Lemma below_is_prefix B b0 g : (b0 <= B)%nat -> rsum B (fun b => if Nat.ltb b b0 then g b else 0) = rsum b0 g.
Proof.
  induction B as [|B IH]; intros H; [replace b0 with O by lia; reflexivity|].
  destruct (Nat.eq_dec b0 (S B)) as [->|Hne].
  - apply rsum_ext; intros b Hb; destruct (Nat.ltb_spec b (S B)); [reflexivity|lia].
  - cbn [rsum]; rewrite IH by lia; destruct (Nat.ltb_spec B b0); [lia|ring].
Qed.

Lemma exp_power b : exp (INR b * ln 2) = 2 ^ b.
Proof.
  induction b as [|b IH]; [simpl; rewrite Rmult_0_l; apply exp_0|].
  rewrite S_INR, Rmult_plus_distr_r, exp_plus, IH, Rmult_1_l, exp_ln by lra; simpl; ring.
Qed.

Theorem bucket_threshold_proof : bucket_threshold.
Proof.
  split; [|exact exp_power].
  intros n B b0 bucket omega s eps Hn Hb He HB Hs U L Test.
  set (drop := fun j => Nat.ltb (bucket j) b0).
  assert (EU : U = part n drop (fun j => exp (INR (S (bucket j)) * omega))).
  { unfold U; rewrite <- (below_is_prefix B b0) by exact Hb.
    exact (by_bucket n B bucket (fun b => Nat.ltb b b0) (fun b => exp (INR (S b) * omega)) HB). }
  assert (EL : L = part n (others drop) (fun j => exp (INR (bucket j) * omega))).
  { unfold L; rewrite (by_bucket n B bucket (fun b => Nat.leb b0 b) (fun b => exp (INR b * omega)) HB).
    apply rsum_ext; intros j _; unfold others, drop; rewrite Nat.ltb_antisym, negb_involutive; reflexivity. }
  set (x := part n drop (fun j => exp (s j / 1))); set (y := part n (others drop) (fun j => exp (s j / 1))).
  assert (X : x <= U).
  { rewrite EU; apply part_le; intros j Hj _; apply exp_le; specialize (Hs j Hj); lra. }
  assert (Y : L <= y).
  { rewrite EL; apply part_le; intros j Hj _; apply exp_le; specialize (Hs j Hj); lra. }
  assert (X0 : 0 <= x) by (apply part_nonneg; intros; left; apply exp_pos).
  pose proof (normaliser_pos n 1 s Hn) as Z.
  assert (XY : x + y = normaliser n 1 s) by apply part_split.
  replace (part n drop (weight n 1 s)) with (x / (x + y)).
  - apply (Rmult_le_reg_r (x + y)); [lra|unfold Rdiv; rewrite Rmult_assoc, Rinv_l, Rmult_1_r by lra]; nra.
  - rewrite XY; unfold Rdiv, x; rewrite Rmult_comm, <- part_scal; apply part_ext; intros j _ _.
    unfold weight, Rdiv; ring.
Qed.
