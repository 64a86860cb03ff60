(** A collision of scalar values is one at every width. *)
From mathcomp Require Import all_ssreflect all_algebra.
From Attnproof.counterexamples.collision Require Import statements.
Set Implicit Arguments.
Unset Strict Implicit.
Import GRing.Theory.
Local Open Scope ring_scope.

Theorem width_proof : width.
Proof.
move=> F T m V Phi x y b u E; split; first by rewrite !mulmxDr !mulmxA E.
move=> a; rewrite !mulmxDr opprD addrACA subrr add0r !mulmxA.
by rewrite [a *m x]mx11_scalar [a *m y]mx11_scalar !mul_scalar_mx scalerBl !mxE.
Qed.
