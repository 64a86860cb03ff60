(** Facts about the softmax weights that several proofs use. *)
Require Import Reals Lra Lia.
From Attnproof.derivations Require Import finite_sums.
From Attnproof.derivations.softmax Require Import statements.
Open Scope R_scope.

Lemma normaliser_pos n tau s : (0 < n)%nat -> 0 < normaliser n tau s.
Proof. intros Hn; apply rsum_pos; [exact Hn|intros i _; apply exp_pos]. Qed.

Lemma weight_pos n tau s i : (0 < n)%nat -> 0 < weight n tau s i.
Proof. intros Hn; apply Rdiv_lt_0_compat; [apply exp_pos|apply normaliser_pos, Hn]. Qed.

Lemma weight_sum n tau s : (0 < n)%nat -> rsum n (weight n tau s) = 1.
Proof.
  intros Hn; pose proof (normaliser_pos n tau s Hn) as Z.
  transitivity (normaliser n tau s * / normaliser n tau s); [|apply Rinv_r; lra].
  symmetry; apply rsum_mult_r.
Qed.

Lemma ln_weight n tau s i : (0 < n)%nat -> ln (weight n tau s i) = s i / tau - lse n tau s.
Proof.
  intros Hn; pose proof (normaliser_pos n tau s Hn) as Z; unfold weight, lse, Rdiv at 1.
  rewrite ln_mult, ln_Rinv, ln_exp by (try apply exp_pos; try apply Rinv_0_lt_compat; assumption); ring.
Qed.
