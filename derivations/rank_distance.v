(** A matrix that is close to one of lower rank shortens some vector. *)
From mathcomp Require Import all_ssreflect all_algebra.
From Attnproof.derivations Require Import squares.
Set Implicit Arguments.
Unset Strict Implicit.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Lemma kernel_column (F : fieldType) m n (B : 'M[F]_(m, n)) : (\rank B < n)%N -> exists2 x : 'cV[F]_n, x != 0 & B *m x = 0.
Proof.
move=> rB; have : kermx B^T != 0 by rewrite kermx_eq0 /row_free mxrank_tr ltn_eqF.
move=> /rowV0Pn [y /sub_kermxP yB y0]; exists y^T; last by rewrite -[B]trmxK -trmx_mul yB trmx0.
by rewrite -trmx0 (inj_eq trmx_inj).
Qed.

(** An inverse up to the factor d: the adjugate, or with d = 1 the inverse itself. *)
Lemma distance_bound (R : realFieldType) n (A C B : 'M[R]_n) (d : R) :
  C *m A = d%:M -> (\rank B < n)%N ->
  exists2 x : 'cV[R]_n, x != 0 & d ^+ 2 * square x <= frobenius C * square ((A - B) *m x).
Proof.
move=> CA /kernel_column [x x0 Bx]; exists x => //.
rewrite mulmxBl Bx subr0; apply: le_trans (frobenius_bound C _).
by rewrite mulmxA CA mul_scalar_mx /square mulr_sumr; apply: ler_sum => i _; rewrite mxE exprMn.
Qed.

Lemma frobenius_distance (R : realFieldType) n (A C B : 'M[R]_n) (d : R) :
  C *m A = d%:M -> (\rank B < n)%N -> d ^+ 2 <= frobenius C * frobenius (A - B).
Proof.
move=> CA /(distance_bound CA) [x x0]; set D := A - B => bound.
have xp : 0 < square x by rewrite lt_neqAle eq_sym square_eq0 x0 square_ge0.
rewrite -(ler_pmul2r xp) -[X in _ <= X]mulrA; apply: le_trans bound _; apply: ler_wpmul2l; last exact: frobenius_bound.
by apply: sumr_ge0 => i _; apply: sumr_ge0 => j _; exact: sqr_ge0.
Qed.
