(** Reusing one layer's selection several layers later: the drifts of the scores add. *)
Require Import Reals Bool Lra Lia.
From Attnproof.derivations Require Import finite_sums.
From Attnproof.derivations.softmax Require Import statements.
From Attnproof.derivations.sparse Require Import statements parts indexer_regret.
Open Scope R_scope.

Lemma drift n L (s : nat -> nat -> R) (c eps : nat -> R) :
  (forall r j, (r < L)%nat -> (j < n)%nat -> Rabs (s (S r) j - s r j - c r) <= eps r) ->
  forall j, (j < n)%nat -> Rabs (s O j - s L j - - rsum L c) <= rsum L eps.
Proof.
  intros H j Hj; induction L as [|L IH]; cbn [rsum].
  - replace (s O j - s O j - - 0) with 0 by ring; rewrite Rabs_R0; lra.
  - assert (A : Rabs (s O j - s L j - - rsum L c) <= rsum L eps) by (apply IH; intros r i Hr Hi; apply H; lia).
    pose proof (H L j ltac:(lia) Hj) as B; rewrite <- Rabs_Ropp in B.
    pose proof (Rabs_triang (s O j - s L j - - rsum L c) (- (s (S L) j - s L j - c L))) as T.
    replace (s O j - s L j - - rsum L c + - (s (S L) j - s L j - c L))
      with (s O j - s (S L) j - - (rsum L c + c L)) in T by ring; lra.
Qed.

Theorem index_reuse_proof : index_reuse.
Proof.
  intros n keep best L s c eps Hn He Ht Hs.
  exact (proj2 (regret n keep best (s O) (s L) (- rsum L c) (rsum L eps) Hn (drift n L s c eps He) Ht Hs)).
Qed.
