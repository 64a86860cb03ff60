(** Lengths of columns, and what erasing and decaying do to them. *)
From mathcomp Require Import all_ssreflect all_algebra.
From Attnproof.derivations Require Export row_products transitions.
From Attnproof.derivations Require Import comring.
Set Implicit Arguments.
Unset Strict Implicit.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Lemma simE (R : comRingType) n (a b : 'rV[R]_n) : sim a b = \sum_i a 0 i * b 0 i.
Proof. by rewrite /sim mxE; apply: eq_bigr => i _; rewrite mxE. Qed.

Lemma square_sim (R : comRingType) n (x : 'cV[R]_n) : square x = sim x^T x^T.
Proof. by rewrite simE; apply: eq_bigr => i _; rewrite mxE. Qed.

Lemma row_col (R : comRingType) n (k : 'rV[R]_n) (x : 'cV[R]_n) : k *m x = (sim k x^T)%:M.
Proof. by rewrite /sim trmxK -mx11_scalar. Qed.

Lemma erase_col (R : comRingType) n beta (k : 'rV[R]_n) (x : 'cV[R]_n) :
  (erase beta k *m x)^T = x^T - (beta * sim k x^T) *: k.
Proof.
rewrite /erase mulmxBl mul1mx -scalemxAl -mulmxA row_col mul_mx_scalar scalerA.
by rewrite linearB /= linearZ /= trmxK.
Qed.

Section Identities.
Variable R : comRingType.
Add Ring R : (comring R).

Lemma erase_identity (x b s : R) : x - b * s * s - (b * s * s - b * s * (b * s * 1)) = x - b * (2%:R - b) * s ^+ 2.
Proof. by identity R. Qed.

Lemma cauchy_identity (a b s : R) : b * (b * a - s * s) - s * (b * s - s * b) = b * (a * b - s ^+ 2).
Proof. by identity R. Qed.
End Identities.

Lemma square_erase (R : comRingType) n beta (k : 'rV[R]_n) (x : 'cV[R]_n) : sim k k = 1 ->
  square (erase beta k *m x) = square x - beta * (2%:R - beta) * sim k x^T ^+ 2.
Proof.
move=> kk; rewrite !square_sim erase_col -erase_identity !simBl !simZl !(simC _ (_ - _)) !simBl !simZl kk.
by rewrite (simC x^T k) mulrBr.
Qed.

Section Real.
Variable R : realFieldType.

Lemma square_ge0 n (x : 'cV[R]_n) : 0 <= square x.
Proof. by apply: sumr_ge0 => i _; exact: sqr_ge0. Qed.

Lemma square_eq0 n (x : 'cV[R]_n) : (square x == 0) = (x == 0).
Proof.
apply/eqP/eqP => [x0|->]; last by apply: big1 => i _; rewrite mxE expr0n.
apply/colP => i; rewrite mxE; apply/eqP; rewrite -(sqrf_eq0 (x i 0)).
by rewrite (psumr_eq0P (fun i _ => sqr_ge0 (x i 0)) x0).
Qed.

Lemma square_decay n (a : 'rV[R]_n) cap (x : 'cV[R]_n) : (forall c, 0 <= a 0 c <= cap) ->
  square (diag_mx a *m x) <= cap ^+ 2 * square x.
Proof.
move=> a1; rewrite /square mulr_sumr; apply: ler_sum => i _.
rewrite mul_diag_mx mxE exprMn ler_wpmul2r ?sqr_ge0 //.
have /andP [a0 aC] := a1 i; by rewrite ler_sqr ?nnegrE // (le_trans a0).
Qed.

Lemma erase_contracts n beta (k : 'rV[R]_n) : sim k k = 1 -> 0 <= beta <= 2%:R -> contraction (erase beta k).
Proof.
move=> kk /andP [b0 b2] x; rewrite square_erase // ler_subl_addr ler_addl.
by apply: mulr_ge0 (sqr_ge0 _); apply: mulr_ge0; rewrite ?subr_ge0.
Qed.

Lemma step_shrinks n beta (k a : 'rV[R]_n) cap (x : 'cV[R]_n) : sim k k = 1 -> 0 <= beta <= 2%:R ->
  (forall c, 0 <= a 0 c <= cap) -> square (transition beta k a *m x) <= cap ^+ 2 * square x.
Proof.
move=> kk b02 a1; rewrite /transition -mulmxA.
exact: le_trans (erase_contracts kk b02 _) (square_decay _ a1).
Qed.

Lemma contraction_mul m n p (A : 'M[R]_(m, n)) (B : 'M[R]_(n, p)) :
  contraction A -> contraction B -> contraction (A *m B).
Proof. by move=> cA cB x; rewrite -mulmxA; exact: le_trans (cA _) (cB _). Qed.

Lemma contraction1 n : contraction (1%:M : 'M[R]_n).
Proof. by move=> x; rewrite mul1mx. Qed.

Lemma step_contracts n beta (k a : 'rV[R]_n) : bounded_step beta k a -> contraction (transition beta k a).
Proof. by move=> [kk [b02 a1]] x; rewrite -[square x]mul1r -(expr1n _ 2); exact: step_shrinks. Qed.

Lemma steps_contract K beta (k a : nat -> 'rV[R]_K) m n :
  (forall t, (m <= t < m + n)%N -> bounded_step (beta t) (k t) (a t)) -> contraction (transitions beta k a m n).
Proof.
elim: n => [|n IH] steps; first exact: contraction1.
apply: contraction_mul; first by apply: step_contracts; apply: steps; rewrite leq_addr addnS leqnn.
by apply: IH => t /andP [mt tn]; apply: steps; rewrite mt addnS ltnS (ltnW tn).
Qed.

(** Cauchy and Schwarz. *)
Lemma cauchy n (a b : 'rV[R]_n) : sim a b ^+ 2 <= sim a a * sim b b.
Proof.
have [b0|b0] := boolP (sim b b == 0).
  have : b^T == 0 by rewrite -square_eq0 square_sim trmxK.
  rewrite -trmx0 (inj_eq trmx_inj) => /eqP ->.
  by rewrite /sim trmx0 !mulmx0 mxE expr0n mulr0.
have bp : 0 < sim b b by rewrite lt_neqAle eq_sym b0 -[b]trmxK -square_sim square_ge0.
have := square_ge0 (sim b b *: a - sim a b *: b)^T; rewrite square_sim trmxK.
rewrite !simBl !simZl !(simC _ (_ - _)) !simBl !simZl (simC b a).
rewrite cauchy_identity.
by rewrite pmulr_rge0 // subr_ge0.
Qed.

Lemma frobenius_bound m n (A : 'M[R]_(m, n)) (x : 'cV[R]_n) : square (A *m x) <= frobenius A * square x.
Proof.
rewrite /square /frobenius mulr_suml; apply: ler_sum => i _.
have := cauchy (row i A) x^T; rewrite /sim !trmxK.
have -> : (row i A *m x) 0 0 = (A *m x) i 0 by rewrite -row_mul mxE.
have -> : (x^T *m x) 0 0 = square x by rewrite square_sim /sim trmxK.
have -> // : (row i A *m (row i A)^T) 0 0 = \sum_j A i j ^+ 2.
by rewrite mxE; apply: eq_bigr => j _; rewrite !mxE expr2.
Qed.
End Real.
