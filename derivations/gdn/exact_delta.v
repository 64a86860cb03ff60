(** The exact delta recurrence of softmax attention. *)
Require Import Reals Lra Lia.
From Attnproof.derivations Require Import finite_sums.
From Attnproof.derivations.gdn Require Import statements running_output.
Open Scope R_scope.

Theorem exact_delta_proof : exact_delta.
Proof.
  intros s v; split.
  - unfold output; simpl; field; pose proof (exp_pos (s O)); lra.
  - intros n Hn; unfold output, self_weight; cbn [rsum]; fold (total s n).
    pose proof (total_pos s n Hn) as P; pose proof (exp_pos (s n)) as E; field; lra.
Qed.
