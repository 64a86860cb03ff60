(** A product through m features has rank at most m. *)
From mathcomp Require Import all_ssreflect all_algebra.
From Attnproof.counterexamples.rank Require Import statements.
Set Implicit Arguments.
Unset Strict Implicit.
Import GRing.Theory.
Local Open Scope ring_scope.

Theorem finite_feature_proof : finite_feature.
Proof.
move=> F n m n' Phi Psi; split; last by rewrite mul1mx mxrank1.
exact: leq_trans (mxrankM_maxl _ _) (rank_leq_col _).
Qed.
