(** Neumann product, powers, inverse, two binomials, and what forward substitution adds up. *)
From mathcomp Require Import all_ssreflect all_algebra.
From Attnproof.derivations Require Import squares.
From Attnproof.derivations.kda Require Import statements equal_keys pascal.
Set Implicit Arguments.
Unset Strict Implicit.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

(** What forward substitution makes of roundings: the sum of the first errors keeps at most their sum. *)
Section Rounding.
Variables (R : realFieldType) (beta largest : R) (b exact computed rounding : nat -> R).
Hypotheses (b02 : 0 <= beta <= 2%:R)
  (exactE : forall t, exact t = b t - beta * \sum_(s < t) exact s)
  (computedE : forall t, computed t = b t - beta * (\sum_(s < t) computed s) + rounding t)
  (small : forall t, `|rounding t| <= largest).
Let error t := computed t - exact t.

Lemma errorE t : error t = rounding t - beta * \sum_(s < t) error s.
Proof.
have -> : \sum_(s < t) error s = \sum_(s < t) computed s - \sum_(s < t) exact s by rewrite -sumrB.
rewrite /error computedE exactE [_ + rounding t]addrC -addrA; congr (_ + _).
by rewrite mulrBr !opprB addrC addrA subrK.
Qed.

Lemma near_one : `|1 - beta| <= 1.
Proof.
case/andP: b02 => b0 b2; rewrite ler_norml; apply/andP; split; last by rewrite ler_subl_addr ler_addl.
by rewrite ler_subr_addr addrC ler_subl_addr.
Qed.

Lemma sum_errors t : `|\sum_(s < t) error s| <= t%:R * largest.
Proof.
elim: t => [|t IH]; first by rewrite big_ord0 normr0 mul0r.
rewrite big_ord_recr /= errorE; set s := \sum_(_ < _) _.
have -> : s + (rounding t - beta * s) = (1 - beta) * s + rounding t by rewrite mulrBl mul1r addrCA [LHS]addrC.
apply: le_trans (ler_norm_add _ _) _; rewrite -addn1 natrD [X in _ <= X]mulrDl mul1r; apply: ler_add => //.
by rewrite normrM; apply: le_trans _ IH; rewrite ler_pimull // near_one.
Qed.

Lemma error_bound t : `|error t| <= (1 + beta * t%:R) * largest.
Proof.
rewrite errorE mulrDl mul1r; apply: le_trans (ler_norm_sub _ _) _; apply: ler_add => //.
case/andP: b02 => b0 _; rewrite normrM (ger0_norm b0) -mulrA; apply: ler_wpmul2l => //; exact: sum_errors.
Qed.
End Rounding.

Theorem neumann_exact_unstable_proof : neumann_exact_unstable.
Proof.
split; [|split; [|split; [|split; [|split]]]].
- move=> F n r N low size.
  have E := telescopes N r; rewrite (lower_nilpotent low size) subr0 in E.
  have unit : 1 + N \in unitmx by have [] := mulmx1_unit E.
  by split=> //; apply: (can_inj (mulKmx unit)); rewrite mulmxV // -[RHS]E.
- by move=> F n beta i j; split=> [m|]; [exact: powers|exact: inverse].
- move=> R beta d b02; have /andP [b0 _] := b02; rewrite normrN normrM (ger0_norm b0).
  by rewrite -[X in _ <= X]mulr1; apply: ler_wpmul2l => //; rewrite normrX exprn_ile1 // near_one.
- by vm_compute.
- by rewrite -natrX ltr_nat large_binomial.
- exact: error_bound.
Qed.
