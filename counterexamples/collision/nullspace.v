(** More tokens than features: some change of the values is invisible to the state. *)
From mathcomp Require Import all_ssreflect all_algebra.
From Attnproof.counterexamples.collision Require Import statements.
Set Implicit Arguments.
Unset Strict Implicit.
Import GRing.Theory.
Local Open Scope ring_scope.

Theorem nullspace_proof : nullspace.
Proof.
move=> F T m Phi mT; have : kermx Phi != 0.
  by rewrite kermx_eq0 /row_free; apply: contraTneq (rank_leq_col Phi) => ->; rewrite -ltnNge.
move=> /matrix0Pn [i [j Kij]]; pose z := (row i (kermx Phi))^T.
have zPhi : Phi^T *m z = 0 by rewrite /z -trmx_mul -row_mul mulmx_ker row0 trmx0.
have z0 : z != 0.
  by apply: contra Kij => /eqP E; have := congr1 (fun M : 'cV[F]_T => M j 0) E; rewrite !mxE => ->.
clearbody z; exists z => //; split=> // V v w; split; [|split].
- by rewrite mulmxDr mulmxA zPhi mul0mx addr0.
- move=> w0; rewrite -subr_eq0 addrC addKr; apply: contra z0 => /eqP E.
  have [j0 wj] : exists j, w 0 j != 0 by move/rV0Pn: w0.
  apply/eqP/colP => t; have := congr1 (fun M : 'M[F]_(T, V) => M t j0) E.
  by rewrite !mxE big_ord1 => /eqP; rewrite mulf_eq0 (negbTE wj) orbF => /eqP ->.
- by move=> a; rewrite mulmxDr addrC addKr mulmxA {1}[a *m z]mx11_scalar mul_scalar_mx.
Qed.
