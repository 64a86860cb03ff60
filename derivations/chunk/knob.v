(** Linear attention in chunks of any sizes. *)
From mathcomp Require Import all_ssreflect all_algebra.
From Attnproof.derivations.chunk Require Import solve equals_recurrent.
Set Implicit Arguments.
Unset Strict Implicit.
Import GRing.Theory.
Local Open Scope ring_scope.

Lemma causal C t j : (0 < C)%N -> sees true true C t j = (j <= t)%N.
Proof.
move=> C0; rewrite /sees /=; case: eqP => // /eqP ne; apply/idP/idP => [lt|jt].
  by rewrite leqNgt; apply/negP => tj; move: lt; rewrite ltnNge leq_div2r // ltnW.
by rewrite ltn_neqAle eq_sym ne leq_div2r.
Qed.

Theorem knob_proof : knob.
Proof.
split; last by split=> // C t j C0; split; [exact: causal|rewrite /sees; case: ifP].
move=> R K V beta q k v sizes; set one := fun=> _.
have sums t : state beta k one v false 0 t = \sum_(j < t) (k j)^T *m v j.
  elim: t => [|t IH]; first by rewrite big_ord0.
  by rewrite /= IH big_ord_recr /= diag_const_mx mul1mx.
rewrite -[0 in LHS]/(state beta k one v false 0 0) chunkwise_state /=; apply: eq_map => t /=.
rewrite -[_ + _]/(state beta k one v false 0 t.+1) sums mulmx_sumr.
by apply: eq_bigr => j _; rewrite row_outer.
Qed.
