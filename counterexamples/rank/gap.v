(** A block that is invertible keeps matrices of lower rank away. *)
From mathcomp Require Import all_ssreflect all_algebra.
From Attnproof.derivations Require Import squares rank_distance.
From Attnproof.counterexamples.rank Require Import statements.
Set Implicit Arguments.
Unset Strict Implicit.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

(** A sum over some indices, each taken once, is at most the sum over all. *)
Lemma sum_injective (R : realFieldType) m n (f : 'I_m -> 'I_n) (F : 'I_n -> R) :
  injective f -> (forall i, 0 <= F i) -> \sum_i F (f i) <= \sum_i F i.
Proof.
move=> inj F0; have <- : \sum_(j in f @: 'I_m) F j = \sum_i F (f i).
  by rewrite big_imset //= => i j _ _; exact: inj.
by rewrite big_mkcond; apply: ler_sum => i _; case: ifP => // _; exact: F0.
Qed.

Lemma block_square (R : realFieldType) m n (f : 'I_m -> 'I_n) (x : 'cV[R]_n) :
  injective f -> square (rowsub f x) <= square x.
Proof.
move=> inj; rewrite /square; under eq_bigr => i _ do rewrite mxE.
by apply: (sum_injective (F := fun i => x i 0 ^+ 2)) => // i; exact: sqr_ge0.
Qed.

Lemma block_frobenius (R : realFieldType) m m' n n' (f : 'I_m -> 'I_n) (g : 'I_m' -> 'I_n') (A : 'M[R]_(n, n')) :
  injective f -> injective g -> frobenius (mxsub f g A) <= frobenius A.
Proof.
move=> fi gi; rewrite /frobenius.
apply: le_trans (sum_injective (F := fun i => \sum_j A i j ^+ 2) fi _); last first.
  by move=> i; apply: sumr_ge0 => j _; exact: sqr_ge0.
apply: ler_sum => i _; under eq_bigr => j _ do rewrite mxE.
by apply: (sum_injective (F := fun j => A (f i) j ^+ 2)) => // j; exact: sqr_ge0.
Qed.

Theorem gap_proof : gap.
Proof.
move=> R n n' m P B rows columns ri ci rB A unitA.
pose block := mxsub rows columns B.
have rb : (\rank block < m.+1)%N.
  have -> : block = rowsub rows 1%:M *m B *m colsub columns 1%:M.
    by rewrite mul_rowsub_mx mul1mx mulmx_colsub mulmx1 -mxsubcr.
  rewrite ltnS; apply: leq_trans rB.
  by rewrite -mulmxA; apply: leq_trans (mxrankM_maxr _ _) (mxrankM_maxl _ _).
have inverse : invmx A *m A = 1%:M by exact: mulVmx.
have frob0 k (M : 'M[R]_k) : 0 <= frobenius M by apply: sumr_ge0 => i _; apply: sumr_ge0 => j _; exact: sqr_ge0.
split; [|split; last by rewrite !mulmx1].
- have [y y0 bound] := distance_bound inverse rb.
  pose E : 'M[R]_(n', m.+1) := colsub columns 1%:M.
  have Ey (M : 'M[R]_(n, n')) : rowsub rows (M *m (E *m y)) = mxsub rows columns M *m y.
    by rewrite mulmxA /E mulmx_colsub mulmx1 -mul_rowsub_mx -mxsubrc.
  have Esquare : square (E *m y) = square y.
    have EE : E^T *m E = 1%:M.
      rewrite /E trmx_mxsub trmx1 -mxsub_mul mulmx1.
      by apply/matrixP => i j; rewrite !mxE (inj_eq ci).
    by rewrite !square_sim /sim !trmxK trmx_mul -mulmxA (mulmxA _ E) EE mul1mx.
  exists (E *m y); first by rewrite -square_eq0 Esquare square_eq0.
  rewrite Esquare -[square y]mul1r -(expr1n _ 2); apply: le_trans bound _; apply: ler_wpmul2l => //.
  apply: le_trans (block_square _ ri); rewrite Ey.
  by rewrite /block -[A]/(mxsub rows columns P) -raddfB.
- rewrite -(expr1n _ 2); apply: le_trans (frobenius_distance inverse rb) _; apply: ler_wpmul2l => //.
  have -> : A - block = mxsub rows columns (P - B) by apply/matrixP => i j; rewrite !mxE.
  exact: block_frobenius.
Qed.
