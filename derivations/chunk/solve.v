(** Inside a chunk: the state by what is written, and the triangular system that the writes solve. *)
From mathcomp Require Import all_ssreflect all_algebra.
From Attnproof.derivations Require Export row_products squares.
From Attnproof.derivations.chunk Require Export statements.
Set Implicit Arguments.
Unset Strict Implicit.
Import GRing.Theory.
Local Open Scope ring_scope.

Section Solve.
Variables (R : comUnitRingType) (K V : nat).
Variables (beta : nat -> R) (q k alpha : nat -> 'rV[R]_K) (v : nat -> 'rV[R]_V).

Lemma decayed_none m (x : 'rV[R]_K) : decayed alpha m m x = x.
Proof. by apply/rowP => c; rewrite mxE big_geq // mul1r. Qed.

(** One more decay. *)
Lemma decayed_more m t (x : 'rV[R]_K) : (m <= t)%N -> decayed alpha m t.+1 x = decayed alpha m t x *m diag_mx (alpha t).
Proof.
by move=> mt; apply/rowP => c; rewrite mul_mx_diag !mxE big_nat_recr //= mulrAC.
Qed.

(** A decay moves from one factor of an inner product to the other. *)
Lemma sim_decayed m t (x y : 'rV[R]_K) : sim x (decayed alpha m t y) = sim (decayed alpha m t x) y.
Proof. by rewrite !simE; apply: eq_bigr => c _; rewrite !mxE mulrCA mulrA. Qed.


Lemma lower_unit m C : 1%:M + lower beta k alpha m C \in unitmx.
Proof.
have trig : is_trig_mx (1%:M + lower beta k alpha m C).
  by apply/is_trig_mxP => i j ij; rewrite !mxE -(inj_eq val_inj) ltn_eqF //= ltnNge ltnW //= addr0.
rewrite unitmxE (det_trig trig) big1 ?unitr1 // => i _.
by rewrite !mxE eqxx ltnn addr0.
Qed.

(** The state of a chunk that begins with S before token m, by anything that is written along the keys. *)
Variables (m : nat) (S : nat -> 'M[R]_(K, V)) (u : nat -> 'rV[R]_V).
Hypothesis writes : forall i, S i.+1 = diag_mx (alpha (m + i)%N) *m S i + (k (m + i)%N)^T *m u i.

Let reads x n t := decayed alpha m t x *m S 0%N
  + \sum_(j < n) sim x (decayed alpha (m + j).+1 t (k (m + j)%N)) *: u j.

Lemma read_decayed (x : 'rV[R]_K) n : (forall y, y *m S n = reads y n (m + n)) ->
  x *m diag_mx (alpha (m + n)) *m S n = reads x n (m + n).+1.
Proof.
move=> ->; congr (_ + _).
  by congr (_ *m _); apply/rowP => c; rewrite decayed_more ?leq_addr // !mul_mx_diag !mxE mulrA.
apply: eq_bigr => j _; congr (_ *: _).
rewrite decayed_more; last by rewrite ltn_add2l.
by rewrite !simE; apply: eq_bigr => c _; rewrite !mul_mx_diag !mxE -[LHS]mulrA [alpha _ _ _ * _]mulrC.
Qed.

Lemma read_inside (x : 'rV[R]_K) n : x *m S n = reads x n (m + n).
Proof.
elim: n x => [|n IH] x; first by rewrite /reads addn0 decayed_none big_ord0 addr0.
rewrite writes mulmxDr mulmxA read_decayed // /reads big_ord_recr /= addnS decayed_none row_outer.
by rewrite addrA.
Qed.

Lemma read_next (x : 'rV[R]_K) n : x *m diag_mx (alpha (m + n)) *m S n = reads x n (m + n).+1.
Proof. by apply: read_decayed => y; exact: read_inside. Qed.

(** The state, read row by row by the unit rows. *)
Lemma state_inside n : S n = diag_mx (decayed alpha m (m + n) (const_mx 1)) *m S 0%N
  + \sum_(j < n) (decayed alpha (m + j).+1 (m + n) (k (m + j)%N))^T *m u j.
Proof.
apply/row_matrixP => c; rewrite !rowE read_inside /reads mulmxDr mulmx_sumr mulmxA; congr (_ *m _ + _).
  by apply/rowP => d; rewrite mul_mx_diag !mxE mulr1 mulrC.
by apply: eq_bigr => j _; rewrite row_outer.
Qed.
End Solve.

(** A row of a matrix that vanishes where a condition fails, times a matrix. *)
Lemma triangular_row (R : comRingType) C V (A : 'M[R]_C) (U : 'M[R]_(C, V)) (f : nat -> R) (u : nat -> 'rV[R]_V)
  (i : 'I_C) n : (n <= C)%N -> (forall j : 'I_C, A i j = if (j < n)%N then f j else 0) ->
  (forall j : 'I_C, row j U = u j) -> row i (A *m U) = \sum_(j < n) f j *: u j.
Proof.
move=> nC AE UE; rewrite row_mul mulmx_sum_row (big_ord_widen C (fun j => f j *: u j) nC) [RHS]big_mkcond /=.
by apply: eq_bigr => j _; rewrite mxE AE UE; case: ifP => // _; rewrite scale0r.
Qed.

Lemma row_diag (R : comRingType) m n (d : 'rV[R]_m) (A : 'M[R]_(m, n)) i : row i (diag_mx d *m A) = d 0 i *: row i A.
Proof. by apply/rowP => c; rewrite mul_diag_mx !mxE. Qed.
