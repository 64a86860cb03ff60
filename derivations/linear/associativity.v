(** Sums over tokens factor through a state of fixed size. *)
From mathcomp Require Import all_ssreflect all_algebra.
From Attnproof.derivations Require Import matrices.
From Attnproof.derivations.linear Require Import statements.
Set Implicit Arguments.
Unset Strict Implicit.
Import GRing.Theory.
Local Open Scope ring_scope.

Theorem associativity_proof : associativity.
Proof.
move=> R T m V q phi v; split.
  rewrite mulmx_sumr; apply: eq_bigr => j _.
  by rewrite mulmxA [q *m (phi j)^T]mx11_scalar mul_scalar_mx.
by rewrite /sim linear_sum /= mulmx_sumr summxE.
Qed.
