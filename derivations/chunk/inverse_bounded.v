(** The entries of the inverse are what later steps erase of an earlier key. *)
From mathcomp Require Import all_ssreflect all_algebra.
From Attnproof.derivations.chunk Require Import solve equals_recurrent.
Set Implicit Arguments.
Unset Strict Implicit.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Entries.
Variables (R : comUnitRingType) (K : nat) (beta : nat -> R) (k alpha : nat -> 'rV[R]_K).

Definition erased (i j : nat) : R :=
  - beta i * (k i *m diag_mx (alpha i) *m transitions beta k alpha j.+1 (i - j.+1) *m (k j)^T) 0 0.
Definition entry (i j : nat) : R := if (j < i)%N then erased i j else (i == j)%:R.
Definition weight (i r : nat) : R := beta i * sim (k i) (decayed alpha r.+1 i.+1 (k r)).

(** Row i of the triangular system, for column j. *)
Lemma erased_row i j : (j < i)%N -> erased i j = - weight i j - \sum_(j.+1 <= r < i) weight i r * erased r j.
Proof.
move=> ji; pose S t := transitions beta k alpha j.+1 t *m (k j)^T.
have steps t : S t.+1 = step beta k alpha (fun=> 0 : 'rV_1) true (j.+1 + t) (S t).
  by rewrite /S /= /transition /kda_step write_erase mulmx0 scaler0 addr0 !mulmxA.
have writes t : S t.+1 = diag_mx (alpha (j.+1 + t)%N) *m S t
    + (k (j.+1 + t)%N)^T *m write_row beta k alpha (fun=> 0) true (j.+1 + t) (S t).
  by rewrite steps step_row.
have := read_next writes (k i) (i - j.+1); rewrite subnKC // => E.
rewrite /erased -mulmxA -/(S _) E mxE mulrDr; congr (_ + _).
  by rewrite /S /= mul1mx -/(sim _ _) -sim_decayed mulNr.
have -> : \sum_(j.+1 <= r < i) weight i r * erased r j
    = \sum_(r < i - j.+1) weight i (r + j.+1) * erased (r + j.+1) j.
  by rewrite -{1}[j.+1]add0n big_addn big_mkord.
rewrite mulNr summxE mulr_sumr; congr (- _); apply: eq_bigr => r _.
rewrite /weight /erased addnK [(r + _)%N]addnC mxE -mulrA; congr (_ * (_ * _)).
by rewrite /write_row sub0r scalerN mxE [X in - X = _]mxE mulNr /S !mulmxA.
Qed.

Lemma inverse_entries C : invmx (1%:M + lower beta k alpha 0 C) = \matrix_(i, j) entry i j.
Proof.
set M := \matrix_(i, j) _; have unit := lower_unit beta k alpha 0 C.
suff inverse : (1%:M + lower beta k alpha 0 C) *m M = 1%:M.
  by apply: (can_inj (mulKmx unit)); rewrite inverse mulmxV.
apply/matrixP => i j; rewrite mulmxDl mul1mx mxE [X in X + _]mxE.
have -> : (lower beta k alpha 0 C *m M) i j = \sum_(0 <= r < i) weight i r * entry r j.
  rewrite big_mkord mxE (big_ord_widen C (fun r => weight i r * entry r j) (ltnW (ltn_ord i))) [RHS]big_mkcond /=.
  by apply: eq_bigr => r _; rewrite !mxE; case: ifP => // _; rewrite mul0r.
have above r : (r < j)%N -> entry r j = 0.
  by move=> rj; rewrite /entry ltnNge (ltnW rj) /= ltn_eqF.
rewrite mxE -(inj_eq val_inj) /=; have [ij|ij] := leqP i j.
  rewrite {1}/entry ltnNge ij /= big_nat_cond big1 ?addr0 // => r /andP [/andP [_ ri] _].
  by rewrite above ?mulr0 // (leq_trans ri).
rewrite (big_cat_nat _ _ _ (leq0n j) (ltnW ij)) /= big_nat_cond big1 ?add0r; last first.
  by move=> r /andP [/andP [_ rj] _]; rewrite above ?mulr0.
rewrite big_ltn // {2}/entry ltnn eqxx mulr1 {1}/entry ij erased_row // gtn_eqF // -/(weight i j).
have -> : \sum_(j.+1 <= r < i) weight i r * entry r j = \sum_(j.+1 <= r < i) weight i r * erased r j.
  by apply: eq_big_nat => r /andP [jr _]; rewrite /entry jr.
by rewrite -opprD addNr.
Qed.
End Entries.

Theorem inverse_bounded_proof : inverse_bounded.
Proof.
split=> [R K beta k alpha C i j ji|R K beta k alpha C i j ji steps].
  by rewrite inverse_entries mxE /entry ji.
rewrite inverse_entries mxE /entry ji /erased; set t := transitions _ _ _ _ _.
have [ki [/andP [b0 b2] ai]] := steps i (ltn_ord i); have [kj _] := steps j (ltn_ord j).
pose w := diag_mx (alpha i) *m (t *m (k j)^T).
have -> : k i *m diag_mx (alpha i) *m t *m (k j)^T = k i *m w by rewrite /w !mulmxA.
have short : square w <= 1.
  apply: le_trans (square_decay _ ai) _; rewrite expr1n mul1r.
  have contracts : contraction t.
    apply: steps_contract => r /andP [_ ri]; apply: steps; apply: leq_trans ri _.
    by rewrite subnKC // ltnW.
  by apply: le_trans (contracts _) _; rewrite square_sim trmxK kj.
have /(le_trans (cauchy (k i) w^T)) : sim (k i) (k i) * sim w^T w^T <= 1 by rewrite ki mul1r -square_sim.
rewrite -[k i *m w]/(k i *m w) row_col mxE eqxx mulr1n normrM normrN (ger0_norm b0) => s1.
rewrite -[X in _ <= X]mulr1; apply: ler_wpmul2l => //.
by rewrite -(@expr_le1 _ 2) // -normrX ger0_norm ?sqr_ge0.
Qed.
