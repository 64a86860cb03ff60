(** By counting two histories share a state, and the query of an address where they differ tells them apart. *)
From mathcomp Require Import all_ssreflect all_algebra.
From Attnproof.counterexamples.memory Require Import statements.
Set Implicit Arguments.
Unset Strict Implicit.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Read.
Variables (R : realFieldType) (n d : nat) (w : 'I_n -> 'I_n -> R).
Hypotheses (n1 : (1 < n)%N) (w0 : forall i j, 0 < w i j) (lead : forall i j, j != i -> w i j * n.-1%:R < w i i).

(** All other addresses together weigh less than the query's own. *)
Lemma others i : \sum_(j | j != i) w i j < w i i.
Proof.
have n0 : 0 < n.-1%:R :> R by rewrite ltr0n -ltnS prednK // ltnW.
rewrite -(ltr_pmul2r n0) mulr_suml.
have count : #|[pred j : 'I_n | j != i]| = n.-1 by rewrite cardC1 card_ord.
have -> : w i i * n.-1%:R = \sum_(j | j != i) w i i by rewrite sumr_const count mulr_natr.
have [j ji] : exists j : 'I_n, j != i.
  have : (0 < #|[pred j : 'I_n | j != i]|)%N by rewrite count -ltnS prednK // ltnW.
  by move=> /card_gt0P [j ji]; exists j.
rewrite (bigD1 j) //= [X in _ < X](bigD1 j) //=; apply: ltr_le_add; first exact: lead.
by apply: ler_sum => r /andP [ri _]; apply: ltW; exact: lead.
Qed.

Lemma total_gt0 i : 0 < \sum_j w i j.
Proof.
by rewrite (bigD1 i) //=; apply: ltr_paddr (w0 i i); apply: sumr_ge0 => j _; exact: ltW.
Qed.

Lemma rest_bounds (h : 'M[bool]_(n, d)) i c :
  0 <= \sum_(j | j != i) w i j * (h j c)%:R <= \sum_(j | j != i) w i j.
Proof.
apply/andP; split; first by apply: sumr_ge0 => j _; rewrite mulr_ge0 ?ler0n // ltW.
by apply: ler_sum => j _; case: (h j c); rewrite ?mulr1 // mulr0 ltW.
Qed.

Lemma read_low (h : 'M[bool]_(n, d)) i c : h i c = false -> read w h i c < 2%:R^-1.
Proof.
move=> hi; rewrite /read ltr_pdivr_mulr ?total_gt0 // mulrC ltr_pdivl_mulr ?ltr0n //.
rewrite (bigD1 i) //= hi mulr0 add0r [X in _ < X](bigD1 i) //= mulr_natr mulr2n.
have /andP [_ up] := rest_bounds h i c.
by apply: ltr_le_add => //; apply: le_lt_trans up _; exact: others.
Qed.

Lemma read_high (h : 'M[bool]_(n, d)) i c : h i c -> 2%:R^-1 < read w h i c.
Proof.
move=> hi; rewrite /read ltr_pdivl_mulr ?total_gt0 // mulrC ltr_pdivr_mulr ?ltr0n //.
rewrite [X in _ < X * _](bigD1 i) //= hi mulr1 (bigD1 i) //= mulr_natr mulr2n.
have /andP [low _] := rest_bounds h i c.
rewrite -addrA ltr_add2l; apply: lt_le_trans (others i) _.
by rewrite addrC -addrA ler_addl; apply: addr_ge0 => //; rewrite addr_ge0 // ltW.
Qed.
End Read.

Theorem index_bound_proof : index_bound.
Proof.
move=> R n d w State S n1 w0 lead small.
have : ~~ injectiveb S.
  apply/negP => /injectiveP /leq_card; rewrite card_matrix card_bool leqNgt mulnC => /negP; apply.
  by rewrite mulnC.
move=> /injectivePn [h [h' hh' E]].
have /existsP [i /existsP [c hc]] : [exists i, exists c, h i c != h' i c].
  apply: contraR hh' => /existsPn same; apply/eqP/matrixP => i c.
  by have /existsPn /(_ c) := same i; rewrite negbK => /eqP.
pose low := if h i c then h' else h; pose high := if h i c then h else h'.
have lo : low i c = false by rewrite /low; case E1: (h i c) hc => //=; case: (h' i c).
have hi : high i c by rewrite /high; case E1: (h i c) hc => //=; case: (h' i c).
have same : S low = S high by rewrite /low /high; case: ifP.
have less := read_low n1 w0 lead lo; have more := read_high n1 w0 lead hi.
exists low, high, i, c; rewrite less more; split=> //; split=> // reader [].
rewrite same; move: (reader _) => r; rewrite !ltr_distl => /andP [_ rl] /andP [rh _].
by have := lt_trans rh rl; rewrite opprB [X in _ < X]addrC [X in X < _]addrC !subrK ltxx.
Qed.
