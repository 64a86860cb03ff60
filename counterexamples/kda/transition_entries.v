(** The entries of one transition. *)
From mathcomp Require Import all_ssreflect all_algebra.
From Attnproof.derivations Require Export matrices transitions.
Set Implicit Arguments.
Unset Strict Implicit.
Import GRing.Theory.
Local Open Scope ring_scope.

Lemma transition_entry (R : comRingType) K beta (k alpha : 'rV[R]_K) a b :
  transition beta k alpha a b = ((a == b)%:R - beta * (k 0 a * k 0 b)) * alpha 0 b.
Proof. by rewrite /transition /erase mul_mx_diag !mxE big_ord1 !mxE. Qed.

Lemma shear_entry (R : comRingType) K (i j : 'I_K) (lambda : R) a b :
  shear i j lambda a b = (a == b)%:R - lambda * ((a == i) && (b == j))%:R.
Proof. by rewrite /shear !mxE. Qed.
