(** A run may be cut anywhere. *)
Require Import Reals List Lra.
From Attnproof.derivations.kernel Require Import statements.
Open Scope R_scope.

Lemma run_app {Token State Output : Type} (step : Token -> State -> Output * State) first later s :
  run step (first ++ later) s =
    let (o, s') := run step first s in let (outputs, last) := run step later s' in (o ++ outputs, last).
Proof.
  revert s; induction first as [|x first IH]; intros s; cbn [run app].
  - destruct (run step later s); reflexivity.
  - destruct (step x s) as [o s']; rewrite IH; destruct (run step first s') as [os t].
    destruct (run step later t); reflexivity.
Qed.

Theorem split_proof : split.
Proof.
  split.
  - intros Token State Output step pieces; induction pieces as [|piece pieces IH]; intros s; [reflexivity|].
    cbn [in_pieces concat]; rewrite run_app; destruct (run step piece s) as [o s']; rewrite IH; reflexivity.
  - intros u ud us tiny D K a k beta v s s' Hus Ht (d & r & e & w & n & Hd & Hr & He & Hw & Hn & Hs).
    exists d, r, e, w, n; repeat (split; [assumption|]).
    intros i Hi; specialize (Hs i Hi); unfold near in *.
    assert (0 <= us * (Rabs (n i) + tiny)) by (apply Rmult_le_pos; [assumption|pose proof (Rabs_pos (n i)); lra]).
    lra.
Qed.
