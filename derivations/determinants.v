(** The determinant of a multiple of the identity plus a column times a row. *)
From mathcomp Require Import all_ssreflect all_algebra.
Set Implicit Arguments.
Unset Strict Implicit.
Import GRing.Theory.
Local Open Scope ring_scope.

Lemma det_scalar_outer (R : comRingType) n (a : R) (u : 'cV[R]_n) (w : 'rV[R]_n) :
  \det (a%:M + u *m w) * a = a ^+ n * (a + (w *m u) 0 0).
Proof.
pose M := block_mx a%:M (- u) w (1%:M : 'M_1).
have left : \det M = \det (a%:M + u *m w).
  have : M *m block_mx 1%:M 0 (- w) 1%:M = block_mx (a%:M + u *m w) (- u) 0 1%:M.
    by rewrite mulmx_block !mulmx1 !mulmx0 !add0r mulNmx mulmxN opprK mul1mx subrr.
  by move=> /(congr1 determinant); rewrite det_mulmx det_lblock det_ublock !det1 !mulr1.
have : M *m block_mx 1%:M u 0 (a%:M : 'M_1) = block_mx a%:M 0 w (w *m u + a%:M).
  by rewrite mulmx_block !mulmx1 !mulmx0 !addr0 mul1mx mul_mx_scalar mul_scalar_mx scalerN subrr.
move=> /(congr1 determinant); rewrite det_mulmx det_lblock det_ublock det1 mul1r !det_scalar expr1 left => ->.
by rewrite det_mx11 mxE [a%:M _ _]mxE eqxx mulr1n [RHS]mulrC addrC mulrC.
Qed.
