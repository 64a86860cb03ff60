(** The matrix of exponentials of products has full rank. *)
Require Import Reals Lra Lia List Permutation Sorted.
From Attnproof.derivations Require Import finite_sums exponential_sums.
From Attnproof.counterexamples.rank Require statements.
Open Scope R_scope.
Import Attnproof.counterexamples.rank.statements (distinct, exponential_full).

(** Any n distinct reals can be put in increasing order. *)
Lemma sorted n : forall q : nat -> R, distinct n q ->
  exists s : nat -> nat, (forall i, (i < n)%nat -> (s i < n)%nat) /\
    forall i j, (i < j)%nat -> (j < n)%nat -> q (s i) < q (s j).
Proof.
  induction n as [|n IH]; intros q D; [exists (fun i => i); split; intros; lia|].
  destruct (IH q) as (s & W & Q); [intros i j Hi Hj; apply D; lia|].
  assert (cut : forall m, (m <= n)%nat -> exists p, (p <= m)%nat /\
    (forall i, (i < p)%nat -> q (s i) < q n) /\ (forall i, (p <= i)%nat -> (i < m)%nat -> q n < q (s i))).
  { induction m as [|m IHm]; intros Hm; [exists O; repeat split; intros; lia|].
    destruct IHm as (p & Hp & A & B); [lia|].
    destruct (Rtotal_order (q (s m)) (q n)) as [L|[E|G]].
    - exists (S m); repeat split; [lia| |intros; lia]; intros i Hi.
      destruct (Nat.eq_dec i m) as [->|N]; [exact L|assert (q (s i) < q (s m)) by (apply Q; lia); lra].
    - exfalso; apply (D (s m) n); [specialize (W m ltac:(lia)); lia|lia|specialize (W m ltac:(lia)); lia|exact E].
    - exists p; repeat split; [lia|exact A|intros i Hpi Hi].
      destruct (Nat.eq_dec i m) as [->|N]; [exact G|apply B; lia]. }
  destruct (cut n ltac:(lia)) as (p & Hp & A & B).
  exists (fun i => if Nat.eq_dec i p then n else s (if le_lt_dec p i then pred i else i)); split.
  - intros i Hi; destruct (Nat.eq_dec i p); [lia|].
    destruct (le_lt_dec p i); [specialize (W (pred i) ltac:(lia))|specialize (W i ltac:(lia))]; lia.
  - intros i j Hij Hj; destruct (Nat.eq_dec i p), (Nat.eq_dec j p); subst; [lia| | |].
    + destruct (le_lt_dec p j); [apply B; lia|lia].
    + destruct (le_lt_dec p i); [lia|apply A; lia].
    + destruct (le_lt_dec p i), (le_lt_dec p j); apply Q; lia.
Qed.

Theorem exponential_full_proof : exponential_full.
Proof.
  split.
  - intros n q k c Q K Z; destruct (sorted n q Q) as (s & W & I).
    apply (exp_sum_zero n c k (fun i => q (s i)) K I).
    intros i Hi; unfold exp_sum; rewrite <- (Z (s i) (W i Hi)); apply rsum_ext; intros j _.
    rewrite (Rmult_comm (k j)); reflexivity.
  - intros x j; induction j as [|j IH]; [simpl; rewrite Rmult_0_r; apply exp_0|].
    rewrite S_INR, Rmult_plus_distr_l, exp_plus, IH, Rmult_1_r; simpl; ring.
Qed.
