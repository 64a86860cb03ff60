(** Normalising the rows keeps kernel and rank. *)
From mathcomp Require Import all_ssreflect all_algebra.
From Attnproof.counterexamples.rank Require Import statements.
Set Implicit Arguments.
Unset Strict Implicit.
Import GRing.Theory.
Local Open Scope ring_scope.

Theorem softmax_same_proof : softmax_same.
Proof.
move=> F n n' Z E Z0 P; pose D := diag_mx (\row_i (Z i)^-1).
have -> : P = D *m E by apply/matrixP => i j; rewrite mul_diag_mx !mxE mulrC.
have unitD : D \in unitmx.
  rewrite unitmxE det_diag unitfE; apply/prodf_neq0 => i _; by rewrite mxE invr_neq0.
split; first by rewrite eqmxMfull // row_full_unit.
move=> x; split=> [|E0]; last by rewrite -mulmxA E0 mulmx0.
by rewrite -mulmxA => /(congr1 (mulmx (invmx D))); rewrite mulKmx // mulmx0.
Qed.
