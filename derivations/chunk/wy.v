(** The compact form is the chunk form of a recurrence that starts at I and has no values. *)
From mathcomp Require Import all_ssreflect all_algebra.
From Attnproof.derivations.chunk Require Import solve equals_recurrent.
Set Implicit Arguments.
Unset Strict Implicit.
Import GRing.Theory.
Local Open Scope ring_scope.

Lemma decayed_ones (R : comUnitRingType) K m t (x : 'rV[R]_K) : decayed (fun=> const_mx 1) m t x = x.
Proof. by apply/rowP => c; rewrite mxE big1 ?mul1r // => i _; rewrite mxE. Qed.

Theorem wy_proof : wy.
Proof.
move=> R K beta k n keys B L; pose one (_ : nat) : 'rV[R]_K := const_mx 1; pose none (_ : nat) : 'rV[R]_K := 0.
have LE : lower beta k one 0 n = L.
  apply/matrixP => i j; rewrite mxE [RHS]mxE; case: ifP => // _; rewrite decayed_ones /B mul_diag_mx !mxE simE.
  by congr (_ * _); apply: eq_bigr => c _; rewrite !mxE.
rewrite -LE; split; first exact: lower_unit.
pose S i := transitions beta k one 0 i.
have steps i : S i.+1 = step beta k one none true (0 + i) (S i).
  by rewrite /S /= /transition /kda_step write_erase mulmx0 scaler0 addr0 mulmxA.
have := after_state steps n; rewrite -/(S n) => <-.
rewrite /after /written /S /= mulmx1 decayed_ones diag_const_mx mulmx1.
have -> : to_end k one 0 n = keys by apply/row_matrixP => i; rewrite !rowK decayed_ones.
have -> : from_start one k 0 n = keys by apply/row_matrixP => i; rewrite !rowK decayed_ones.
have -> : values none 0 n = 0 by apply/row_matrixP => i; rewrite rowK row0.
by rewrite sub0r !mulmxN.
Qed.
