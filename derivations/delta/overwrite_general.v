(** What any number of later writes leaves of an earlier one. *)
From mathcomp Require Import all_ssreflect all_algebra.
From Attnproof.derivations Require Import row_products.
From Attnproof.derivations.delta Require Import statements.
Set Implicit Arguments.
Unset Strict Implicit.
Import GRing.Theory.
Local Open Scope ring_scope.

Section Carry.
Variables (R : comRingType) (K V : nat).
Variables (beta : nat -> R) (k : nat -> 'rV[R]_K) (v : nat -> 'rV[R]_V).

Lemma state_sum n : state beta k v n
  = \sum_(j < n) beta j *: (carried beta k (k j)^T j.+1 (n - j.+1) *m v j).
Proof.
elim: n => [|n IH]; first by rewrite big_ord0.
rewrite big_ord_recr /= subnn /= write_erase IH mulmx_sumr; congr (_ + _).
apply: eq_bigr => j _; rewrite -scalemxAr mulmxA; congr (_ *: (_ *m _)).
have jn : (j < n)%N := ltn_ord j.
by rewrite subSS -[in RHS](subnSK jn) /= subnKC.
Qed.

(** Reading row x after one more erasure of key i. *)
Lemma read_erase (x : 'rV[R]_K) i (c : 'cV[R]_K) :
  (x *m (erase (beta i) (k i) *m c)) 0 0 = (x *m c) 0 0 - beta i * sim x (k i) * (k i *m c) 0 0.
Proof.
rewrite /erase mulmxBl mul1mx mulmxBr -scalemxAl -scalemxAr -mulmxA row_outer.
by rewrite !mxE mulrA.
Qed.
End Carry.

Theorem overwrite_general_proof : overwrite_general.
Proof.
split; [|split].
- move=> R K V beta k v n q; rewrite state_sum mulmx_sumr; apply: eq_bigr => j _.
  by rewrite -scalemxAr mulmxA {1}[q *m _]mx11_scalar mul_scalar_mx scalerA.
- move=> R K beta k x n k0 xx kx rho.
  have both : (k 0%N *m carried beta k (k 0%N)^T 1 n) 0 0 = 1 - rho ^+ 2 * (1 - \prod_(i < n) (1 - beta i.+1))
    /\ (x *m carried beta k (k 0%N)^T 1 n) 0 0 = rho * \prod_(i < n) (1 - beta i.+1).
    elim: n => [|n [IH1 IH2]]; first by rewrite big_ord0 subrr mulr0 subr0 mulr1 /= -/(sim _ _) -/(sim _ _) k0 simC.
    rewrite /= add1n !read_erase !kx xx -/rho IH1 !IH2 big_ord_recr /=; set P := \prod_(i < n) _.
    set b := beta n.+1; split; last first.
      by rewrite mulr1 !mulrBr !mulr1; congr (_ - _); rewrite mulrCA (mulrC b P).
    have -> : 1 - P * (1 - b) = 1 - P + b * P.
      by rewrite mulrBr mulr1 opprB addrA addrAC (mulrC P).
    rewrite [in RHS]mulrDr opprD addrA expr2 -!mulrA; congr (_ - _).
    by rewrite [LHS]mulrCA; congr (_ * _); rewrite [LHS]mulrCA.
  exact: (proj1 both).
- move=> R K beta k n k0 orth.
  have both m : (m <= n)%N -> (k 0%N *m carried beta k (k 0%N)^T 1 m) 0 0 = 1 - \sum_(j < m) beta j.+1 * sim (k 0%N) (k j.+1) ^+ 2
    /\ forall i, (m <= i)%N -> (k i.+1 *m carried beta k (k 0%N)^T 1 m) 0 0 = sim (k 0%N) (k i.+1).
    elim: m => [|m IH] mn.
      by rewrite big_ord0 subr0 /= -/(sim _ _) k0; split=> // i _; rewrite -/(sim _ _) simC.
    have [IH1 IH2] := IH (ltnW mn); rewrite /= add1n; split.
      by rewrite read_erase IH1 IH2 // big_ord_recr /= opprD addrA -mulrA -expr2.
    move=> i mi; rewrite read_erase IH2; last exact: ltnW.
    by rewrite orth ?mulr0 ?mul0r ?subr0 // neq_ltn mi orbT.
  exact: (proj1 (both n (leqnn n))).
Qed.
