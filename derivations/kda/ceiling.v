(** The output as a sum over tokens, and the length of what each contributes. *)
From mathcomp Require Import all_ssreflect all_algebra.
From Attnproof.derivations Require Import squares.
From Attnproof.derivations.kda Require Import statements.
Set Implicit Arguments.
Unset Strict Implicit.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Lemma state_sum (R : comRingType) K V beta (k alpha : nat -> 'rV[R]_K) (v : nat -> 'rV[R]_V) n :
  state beta k alpha v n
    = \sum_(j < n) transitions beta k alpha j.+1 (n - j.+1) *m (beta j *: (k j)^T) *m v j.
Proof.
elim: n => [|n IH]; first by rewrite big_ord0.
rewrite big_ord_recr /= subnn /= mul1mx /kda_step write_erase mulmxA IH mulmx_sumr -scalemxAl.
congr (_ + _); apply: eq_bigr => j _.
have jn : (j < n)%N := ltn_ord j.
by rewrite !mulmxA subSS -[in RHS](subnSK jn) /= subnKC.
Qed.

Theorem ceiling_proof : ceiling.
Proof.
split.
- move=> R K V beta k alpha v n q; rewrite state_sum mulmx_sumr; apply: eq_bigr => j _.
  by rewrite !mulmxA {1}[q *m _ *m _]mx11_scalar mul_scalar_mx.
- move=> R K V beta k alpha v cap n q j bounds jn; cbv zeta; rewrite -mulmxA.
  set w := transitions _ _ _ _ _ *m (beta j *: (k j)^T).
  have shrinks m : (j.+1 + m <= n)%N ->
      square (transitions beta k alpha j.+1 m *m (beta j *: (k j)^T))
        <= (\prod_(j.+1 <= t < j.+1 + m) cap t) ^+ 2 * (beta j ^+ 2 * sim (k j) (k j)).
    elim: m => [|m IH] mn.
      rewrite addn0 big_geq // expr1n !mul1r mul1mx square_sim linearZ /= trmxK simZl simZr.
      by rewrite mulrA expr2.
    rewrite addnS big_nat_recr ?leq_addr //= -mulmxA.
    have [kk [b02 a1]] : sim (k (j.+1 + m)%N) (k (j.+1 + m)%N) = 1 /\ 0 <= beta (j.+1 + m)%N <= 2%:R /\
        forall c, 0 <= alpha (j.+1 + m)%N 0 c <= cap (j.+1 + m)%N.
      by apply: bounds; rewrite addSn ltnS leq_addr -addSn -addnS.
    apply: le_trans (step_shrinks _ kk b02 a1) _.
    rewrite exprMn [_ ^+ 2 * cap _ ^+ 2]mulrC -[X in _ <= X]mulrA; apply: ler_wpmul2l; first exact: sqr_ge0.
    by apply: IH; rewrite ltnW // -addnS.
  have := shrinks (n - j.+1)%N; rewrite subnKC // => /(_ (leqnn _)); rewrite -/w => short.
  rewrite simZl simZr mulrA; apply: ler_wpmul2r.
    by rewrite -[v j]trmxK -square_sim square_ge0.
  have -> : (q *m w) 0 0 = sim q w^T by rewrite /sim trmxK.
  rewrite -expr2; apply: le_trans (cauchy _ _) _; do 2! rewrite -[X in _ <= X]mulrA; apply: ler_wpmul2l.
    by rewrite -[q]trmxK -square_sim square_ge0.
  by rewrite -square_sim.
Qed.
