(** Softmax weights as products of what later tokens leave. *)
Require Import Reals Lra Lia PeanoNat.
From Attnproof.derivations Require Import finite_sums.
From Attnproof.derivations.gdn Require Import statements running_output.
Open Scope R_scope.

Theorem survival_product_proof : survival_product.
Proof.
  intros s j d; induction d as [|d IH].
  - rewrite Nat.add_0_r; simpl rprod; unfold self_weight; ring.
  - cbn [rprod]; rewrite <- Rmult_assoc, <- IH, complement by lia.
    rewrite Nat.add_succ_r; fold (total s (S j + d)); fold (total s (S (S j + d))).
    assert (P : 0 < total s (S j + d)) by (apply total_pos; lia).
    assert (Q : 0 < total s (S (S j + d))) by (apply total_pos; lia).
    field; lra.
Qed.
