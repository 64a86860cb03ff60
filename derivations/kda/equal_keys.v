(** The Neumann product, and the entries of the powers and the inverse for equal keys. *)
From mathcomp Require Import all_ssreflect all_algebra.
From Attnproof.derivations.kda Require Import statements.
Set Implicit Arguments.
Unset Strict Implicit.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Exact.
Variables (F : fieldType) (n : nat).

Lemma nilpotent (N : 'M[F]_n.+1) m : strictly_lower N -> forall i j : 'I_n.+1, (i < j + m)%N -> (N ^+ m) i j = 0.
Proof.
move=> low; elim: m => [|m IH] i j; first by rewrite addn0 expr0 mxE -(inj_eq val_inj) => /ltn_eqF ->.
move=> ijm; rewrite exprS mxE big1 // => l _; have [il|li] := leqP i l; first by rewrite low ?mul0r.
by rewrite IH ?mulr0 // -ltnS -addnS (leq_trans _ ijm).
Qed.

Lemma telescopes (N : 'M[F]_n.+1) r :
  (1 + N) * ((1 - N) * \prod_(1 <= s < r.+1) (1 + N ^+ (2 ^ s))) = 1 - N ^+ (2 ^ r.+1).
Proof.
have square_ (M : 'M[F]_n.+1) : (1 - M) * (1 + M) = 1 - M ^+ 2.
  by rewrite mulrBl mul1r mulrDr mulr1 -expr2 opprD addrA addrK.
have square' (M : 'M[F]_n.+1) : (1 + M) * (1 - M) = 1 - M ^+ 2.
  by rewrite mulrDl mul1r mulrBr mulr1 -expr2 addrA subrK.
rewrite mulrA square'; elim: r => [|r IH]; first by rewrite big_geq // mulr1 expn1.
by rewrite big_nat_recr //= mulrA IH square_ -exprM -expnSr.
Qed.

Lemma lower_nilpotent (N : 'M[F]_n.+1) m : strictly_lower N -> (n.+1 <= m)%N -> N ^+ m = 0.
Proof.
move=> low nm; apply/matrixP => i j; rewrite nilpotent ?mxE //.
by apply: leq_trans (leq_trans (ltn_ord i) nm) _; exact: leq_addl.
Qed.
End Exact.

Section EqualKeys.
Variables (F : fieldType) (n : nat) (beta : F).
Let N := equal_keys n beta.

Lemma equal_lower : strictly_lower N.
Proof. by move=> i j ij; rewrite mxE ltnNge ij. Qed.

(** The sum along a diagonal of Pascal's triangle. *)
Lemma hockey d m : (\sum_(l < d) 'C(l, m) = 'C(d, m.+1))%N.
Proof. by elim: d => [|d IH]; rewrite ?big_ord0 ?bin0n // big_ord_recr /= IH binS addnC. Qed.

Lemma powers m (i j : 'I_n.+1) : (N ^+ m.+1) i j = if (j < i)%N then beta ^+ m.+1 * 'C(i - j - 1, m)%:R else 0.
Proof.
elim: m i j => [|m IH] i j; first by rewrite expr1 mxE bin0 mulr1.
rewrite exprS mxE.
have -> : \sum_l N i l * (N ^+ m.+1) l j
    = \sum_(0 <= l < i) beta * (if (j < l)%N then beta ^+ m.+1 * 'C(l - j - 1, m)%:R else 0).
  rewrite big_mkord.
  rewrite (big_ord_widen n.+1 (fun l => beta * (if (j < l)%N then beta ^+ m.+1 * 'C(l - j - 1, m)%:R else 0)) (ltnW (ltn_ord i))).
  by rewrite [RHS]big_mkcond /=; apply: eq_bigr => l _; rewrite IH mxE; case: ifP => // _; rewrite mul0r.
have [ij|ji] := leqP i j.
  rewrite big_nat_cond big1 // => l /andP [/andP [_ li] _].
  by rewrite ltnNge (ltnW (leq_trans li ij)) mulr0.
rewrite (big_cat_nat _ _ _ (leq0n j.+1) ji) /= big_nat_cond big1 ?add0r; last first.
  by move=> l /andP [/andP [_ lj] _]; rewrite ltnNge -ltnS lj mulr0.
rewrite -{1}[j.+1]add0n big_addn big_mkord -subnDA addn1 -hockey natr_sum mulr_sumr.
apply: eq_bigr => l _; have -> : (j < l + j.+1)%N by rewrite addnS ltnS leq_addl.
by rewrite -subnDA addn1 addnK mulrA -exprS.
Qed.

Lemma inverse (i j : 'I_n.+1) :
  invmx (1 + N) i j = if (j < i)%N then - (beta * (1 - beta) ^+ (i - j - 1)) else (i == j)%:R.
Proof.
pose e d : F := - (beta * (1 - beta) ^+ d).
pose M : 'M[F]_n.+1 := \matrix_(i, j) if (j < i)%N then e (i - j - 1)%N else (i == j)%:R.
have sums d : \sum_(l < d) e l = (1 - beta) ^+ d - 1.
  elim: d => [|d IH]; first by rewrite big_ord0 expr0 subrr.
  by rewrite big_ord_recr /= IH /e exprS mulrBl mul1r addrAC.
have inverse_ : (1 + N) *m M = 1.
  apply/matrixP => a b; rewrite mulmxDl mul1mx mxE [X in X + _]mxE.
  have -> : (N *m M) a b = \sum_(0 <= l < a) beta * (if (b < l)%N then e (l - b - 1)%N else (l == b)%:R).
    rewrite mxE big_mkord.
    rewrite (big_ord_widen n.+1 (fun l => beta * (if (b < l)%N then e (l - b - 1)%N else (l == b)%:R)) (ltnW (ltn_ord a))).
    by rewrite [RHS]big_mkcond /=; apply: eq_bigr => l _; rewrite !mxE; case: ifP => // _; rewrite mul0r.
  rewrite mxE; have [ab|ba] := leqP a b.
    rewrite big_nat_cond big1 ?addr0 // => l /andP [/andP [_ la] _].
    by rewrite ltnNge (ltnW (leq_trans la ab)) /= ltn_eqF ?mulr0 // (leq_trans la).
  rewrite (big_cat_nat _ _ _ (leq0n b) (ltnW ba)) /= big_nat_cond big1 ?add0r; last first.
    by move=> l /andP [/andP [_ lb] _]; rewrite ltnNge (ltnW lb) /= ltn_eqF ?mulr0.
  rewrite big_ltn // ltnn eqxx mulr1 (big_addn 0 a b.+1) big_mkord.
  have -> : \sum_(l < a - b.+1) beta * (if (b < l + b.+1)%N then e (l + b.+1 - b - 1)%N else (l + b.+1 == b :> nat)%N%:R)
      = beta * \sum_(l < a - b.+1) e l.
    rewrite mulr_sumr; apply: eq_bigr => l _.
    have -> : (b < l + b.+1)%N by rewrite addnS ltnS leq_addl.
    by rewrite -subnDA addn1 addnK.
  rewrite sums -subnDA addn1 /e mulrBr mulr1 [X in _ + X]addrC subrK addNr.
  by rewrite -(inj_eq val_inj) gtn_eqF.
have unit : 1 + N \in unitmx by have [] := mulmx1_unit inverse_.
suff -> : invmx (1 + N) = M by rewrite mxE.
by apply: (can_inj (mulKmx unit)); rewrite inverse_ mulmxV.
Qed.
End EqualKeys.
