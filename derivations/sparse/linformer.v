(** What a projection of the tokens to fewer slots keeps. *)
From mathcomp Require Import all_ssreflect all_algebra.
From Attnproof.derivations Require Import squares rank_distance.
From Attnproof.derivations.sparse Require statements.
Set Implicit Arguments.
Unset Strict Implicit.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.
Import Attnproof.derivations.sparse.statements (linformer).

Lemma frobenius_adjugate (R : comRingType) (A : 'M[R]_2) : frobenius (\adj A) = frobenius A.
Proof.
have cofactors i j : (\adj A) i j ^+ 2 = A (lift j 0) (lift i 0) ^+ 2.
  by rewrite mxE /cofactor exprMn sqrr_sign mul1r det_mx11 !mxE.
have zero : lift (lift 0 0 : 'I_2) 0 = 0 by exact: val_inj.
rewrite /frobenius !big_ord_recl !big_ord0 !addr0 !cofactors !zero.
by rewrite [LHS]addrC [LHS]addrACA addrC.
Qed.

Theorem linformer_proof : linformer.
Proof.
split.
- move=> F k n P a; split; [split|split].
  + move=> reader; rewrite submxE; move: (cokermx P) (mulmx_coker P) => C PC.
    apply/eqP/rowP => j; have := reader (C *m delta_mx j 0) 0.
    rewrite mulmx0 mulmx0 !mulmxA PC mul0mx -colE => /(_ erefl) /(congr1 (fun M : 'cV[F]_1 => M 0 0)).
    by rewrite [X in X = _]mxE => ->; rewrite !mxE.
  + by move=> /submxP [b ->] v v' E; rewrite -!mulmxA E.
  + split=> [/submxP [b ->]|[b exact_]]; first by exists b => V v; rewrite mulmxA.
    by apply/submxP; exists b; have := exact_ n 1%:M; rewrite !mulmx1.
  + by move=> m B; exact: leq_trans (mxrankM_maxl _ _) (rank_leq_col _).
- move=> R A B P; rewrite -frobenius_adjugate; apply: frobenius_distance; first exact: mul_adj_mx.
  by rewrite ltnS; exact: leq_trans (mxrankM_maxl _ _) (rank_leq_col _).
Qed.
