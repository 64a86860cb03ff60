(** Three entries of a transition rule out the shear. *)
From mathcomp Require Import all_ssreflect all_algebra.
From Attnproof.counterexamples.kda Require Import statements transition_entries.
Set Implicit Arguments.
Unset Strict Implicit.
Import GRing.Theory.
Local Open Scope ring_scope.

Theorem no_shear_proof : no_shear.
Proof.
move=> F K i j lambda ij lambda0; split.
- move=> beta k alpha E; have entry a b := congr1 (fun M : 'M[F]_K => M a b) E.
  have ji : j == i = false by rewrite eq_sym; exact: negbTE.
  have := entry i i; rewrite transition_entry shear_entry eqxx (negbTE ij) andbF mulr0 subr0 => ii.
  have alpha0 : alpha 0 i != 0 by apply: contra_eq_neq ii => ->; rewrite mulr0 eq_sym oner_eq0.
  have := entry j i; rewrite transition_entry shear_entry ji mulr0 subr0 sub0r => /eqP.
  rewrite mulf_eq0 (negbTE alpha0) orbF oppr_eq0 (mulrC (k 0 j)) => /eqP kk.
  have := entry i j; rewrite transition_entry shear_entry (negbTE ij) !eqxx kk subr0 mul0r sub0r mulr1.
  by move=> /eqP; rewrite eq_sym oppr_eq0 (negbTE lambda0).
- by rewrite /shear -scalemxAl mul_delta_mx scaleNr diag_const_mx.
Qed.
