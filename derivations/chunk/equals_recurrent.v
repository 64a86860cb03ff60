(** Chunk after chunk gives what token after token gives. *)
From mathcomp Require Import all_ssreflect all_algebra.
From Attnproof.derivations.chunk Require Import solve.
Set Implicit Arguments.
Unset Strict Implicit.
Import GRing.Theory.
Local Open Scope ring_scope.

Section Equal.
Variables (R : comUnitRingType) (K V : nat).
Variables (beta : nat -> R) (q k alpha : nat -> 'rV[R]_K) (v : nat -> 'rV[R]_V) (erases : bool).

(** What token t writes along its key, into state S. *)
Definition write_row (t : nat) (S : 'M[R]_(K, V)) : 'rV[R]_V :=
  if erases then beta t *: (v t - k t *m diag_mx (alpha t) *m S) else v t.

Lemma step_row t S : step beta k alpha v erases t S = diag_mx (alpha t) *m S + (k t)^T *m write_row t S.
Proof.
rewrite /step /write_row; case: erases => //; rewrite /kda_step /write -scalemxAr mulmxA.
by rewrite -[v t - _]opprB mulmxN scalerN.
Qed.

Variables (m : nat) (S : nat -> 'M[R]_(K, V)).
Hypothesis steps : forall i, S i.+1 = step beta k alpha v erases (m + i) (S i).
Let u i := write_row (m + i) (S i).
Let writes i : S i.+1 = diag_mx (alpha (m + i)%N) *m S i + (k (m + i)%N)^T *m u i.
Proof. by rewrite steps step_row. Qed.

Lemma written_rows C : written beta k alpha v erases m C (S 0%N) = \matrix_(i < C) u i.
Proof.
rewrite /written /u /write_row; case E: erases; last by [].
set U := \matrix_(i < C) _; rewrite -mulmxA -[RHS](mulKmx (lower_unit beta k alpha m C)); congr (_ *m _).
apply: esym; apply/row_matrixP => i; rewrite mulmxDl mul1mx [LHS]linearD /=.
pose f j := sim (k (m + i)%N) (decayed alpha (m + j).+1 (m + i).+1 (k (m + j)%N)).
rewrite (triangular_row (f := fun j => beta (m + i)%N * f j) (u := u) (n := i) (ltnW (ltn_ord i))); first last.
- by move=> j; rewrite rowK /u /write_row E.
- by move=> j; rewrite mxE.
rewrite rowK (read_next writes) -/f.
have -> : \sum_(j < i) (beta (m + i)%N * f j) *: u j = beta (m + i)%N *: \sum_(j < i) f j *: u j.
  by rewrite scaler_sumr; apply: eq_bigr => j _; rewrite scalerA.
rewrite -scalerDr opprD addrA subrK row_diag mxE; congr (_ *: _).
by rewrite linearB /= row_mul !rowK.
Qed.

Lemma output_rows C i : row i (outputs beta q k alpha v erases m C (S 0%N)) = q (m + i)%N *m S i.+1.
Proof.
rewrite /outputs written_rows linearD /= row_mul rowK (read_inside writes _ i.+1) addnS; congr (_ + _).
by rewrite (triangular_row (f := fun j => sim (q (m + i)%N) (decayed alpha (m + j).+1 (m + i).+1 (k (m + j)%N)))
  (u := u) (n := i.+1) (ltn_ord i)) => // j; rewrite ?mxE ?rowK.
Qed.

Lemma after_state C : after beta k alpha v erases m C (S 0%N) = S C.
Proof.
rewrite /after written_rows (state_inside writes C); congr (_ + _).
apply/matrixP => a b; rewrite mxE summxE; apply: eq_bigr => j _.
by rewrite !mxE big_ord1 !mxE.
Qed.
End Equal.

Lemma chunkwise_state (R : comUnitRingType) K V (beta : nat -> R) (q k alpha : nat -> 'rV[R]_K) (v : nat -> 'rV[R]_V)
  erases S sizes m :
  chunkwise beta q k alpha v erases m (state beta k alpha v erases S m) sizes
    = ([seq q t *m state beta k alpha v erases S t.+1 | t <- iota m (sumn sizes)],
       state beta k alpha v erases S (m + sumn sizes)).
Proof.
elim: sizes m => [|C sizes IH] m /=; first by rewrite addn0.
pose run i := state beta k alpha v erases S (m + i).
have steps i : run i.+1 = step beta k alpha v erases (m + i) (run i) by rewrite /run addnS.
have first_ : run 0%N = state beta k alpha v erases S m by rewrite /run addn0.
rewrite -first_ (after_state steps) {1 2}/run IH iotaD map_cat addnA /=; congr (_ ++ _, _).
rewrite -[m in RHS]addn0 iotaDl -val_enum_ord -[RHS]map_comp -[RHS]map_comp; apply: eq_map => i /=.
by rewrite (output_rows q steps) /run addnS.
Qed.

Theorem equals_recurrent_proof : equals_recurrent.
Proof.
split; [|split].
- by move=> R K V beta q k alpha v erases S sizes T; rewrite -[S in LHS]/(state beta k alpha v erases S 0) chunkwise_state.
- by move=> C T C0; rewrite -cats1 sumn_cat sumn_nseq /= addn0 mulnC -divn_eq.
- move=> R K V beta a k v S; rewrite /kda_step !diag_const_mx mul1mx; split=> //.
  by rewrite write_erase mul_scalar_mx -scalemxAr.
Qed.
