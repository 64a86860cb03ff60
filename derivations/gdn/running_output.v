(** Sums that grow by one token: what the exact recurrences share. *)
Require Import Reals Lra Lia.
From Attnproof.derivations Require Import finite_sums.
From Attnproof.derivations.gdn Require Import statements.
Open Scope R_scope.

Definition total (s : nat -> R) (n : nat) : R := rsum n (fun i => exp (s i)).

Lemma total_pos s n : (0 < n)%nat -> 0 < total s n.
Proof. intros Hn; apply rsum_pos; [exact Hn|intros i _; apply exp_pos]. Qed.

Lemma total_next s n : total s (S n) = total s n + exp (s n).
Proof. reflexivity. Qed.

Lemma complement s n : (0 < n)%nat -> 1 - self_weight s n = total s n / total s (S n).
Proof.
  intros Hn; unfold self_weight; fold (total s (S n)).
  pose proof (total_pos s n Hn) as P; pose proof (exp_pos (s n)) as E.
  rewrite total_next; field; lra.
Qed.
