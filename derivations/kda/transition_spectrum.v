(** Eigenvalues, contraction and singularity of one step. *)
From mathcomp Require Import all_ssreflect all_algebra.
From Attnproof.derivations Require Import squares determinants.
From Attnproof.derivations.kda Require Import statements.
Set Implicit Arguments.
Unset Strict Implicit.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Lemma erase_outer (R : comRingType) K beta (k : 'rV[R]_K) : erase beta k = 1%:M + (- beta *: k^T) *m k.
Proof. by rewrite /erase -scalemxAl scaleNr. Qed.

Lemma det_erase (R : comRingType) K beta (k : 'rV[R]_K) : sim k k = 1 -> \det (erase beta k) = 1 - beta.
Proof.
move=> kk; rewrite erase_outer -[LHS]mulr1 det_scalar_outer expr1n mul1r -scalemxAr mxE -/(sim k k) kk.
by rewrite mulr1.
Qed.

Lemma char_erase (F : fieldType) K beta (k : 'rV[F]_K.+1) : sim k k = 1 ->
  char_poly (erase beta k) = ('X - 1%:P) ^+ K * ('X - (1 - beta)%:P).
Proof.
move=> kk; have X1 : 'X - 1%:P != 0 :> {poly F} by rewrite polyXsubC_eq0.
apply: (mulIf X1); rewrite /char_poly.
have -> : char_poly_mx (erase beta k) = ('X - 1%:P)%:M + map_mx polyC (beta *: k^T) *m map_mx polyC k.
  rewrite /char_poly_mx -map_mxM /erase map_mxB map_mx1 -scalemxAl opprB addrA addrAC.
  by rewrite polyC1 raddfB.
rewrite det_scalar_outer -map_mxM mxE -scalemxAr mxE -/(sim k k) kk mulr1 exprSr -!mulrA; congr (_ * _).
by rewrite mulrC polyCB opprB addrA addrAC.
Qed.

Theorem transition_spectrum_proof : transition_spectrum.
Proof.
split.
- move=> F K beta k kk; split; first exact: char_erase.
  split; [|split; [|split]].
  + apply: trmx_inj; rewrite erase_col trmxK kk mulr1 scalerBl scale1r.
    by rewrite [RHS]linearB /= [(beta *: _)^T]linearZ /= trmxK.
  + by move=> x kx; rewrite /erase mulmxBl mul1mx -scalemxAl -mulmxA kx mulmx0 scaler0 subr0.
  + move=> x; exists ((k *m x) 0 0), (x - (k *m x) 0 0 *: k^T); rewrite addrC subrK; split=> //.
    have kk1 : k *m k^T = 1%:M by rewrite [LHS]mx11_scalar -/(sim k k) kk.
    by rewrite mulmxBr -scalemxAr kk1 scalemx1 -mx11_scalar subrr.
  + move=> alpha; rewrite unitmxE /transition det_mulmx det_erase // det_diag unitfE negbK mulf_eq0 subr_eq0.
    split=> [/orP [/eqP <-|/prodf_eq0 [c _ /eqP ac]]|[->|[c ac]]]; [by left|by right; exists c| |].
      by rewrite eqxx.
    by apply/orP; right; apply/prodf_eq0; exists c => //; apply/eqP.
- move=> R K beta k kk; split; last by move=> b02 alpha a1; exact: step_contracts.
  split; last exact: erase_contracts.
  move=> /(_ k^T); rewrite square_erase // trmxK kk expr1n mulr1 ler_subl_addr ler_addl => b.
  have [b0|b0] := leP 0 beta; last by move: b; rewrite nmulr_rge0 // subr_le0 leNgt (lt_trans b0) ?ltr0n.
  have [->|b1] := eqVneq beta 0; first by rewrite ler0n.
  by move: b; rewrite pmulr_rge0 ?subr_ge0 // lt_neqAle eq_sym b1.
Qed.
