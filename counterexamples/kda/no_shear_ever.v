(** Bounded steps lengthen no vector; a shear does. *)
From mathcomp Require Import all_ssreflect all_algebra.
From Attnproof.derivations Require Import squares comring.
From Attnproof.counterexamples.kda Require Import statements transition_entries.
Set Implicit Arguments.
Unset Strict Implicit.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Identity.
Variable R : comRingType.
Add Ring R : (comring R).
Lemma apart x y l : 2%:R * ((1 - x) + l * (y + l)) = l ^+ 2 + (1 - (x ^+ 2 + y ^+ 2)) + ((x - 1) ^+ 2 + (y + l) ^+ 2) :> R.
Proof. by identity R. Qed.
End Identity.

(** A point of the unit disc is away from (1, -l). *)
Lemma outside (R : realFieldType) (x y l : R) : l != 0 -> x ^+ 2 + y ^+ 2 <= 1 ->
  let distance := l ^+ 2 / (2%:R * (1 + `|l|)) in distance <= `|x - 1| \/ distance <= `|y + l|.
Proof.
move=> l0 disc d; have l1 : 0 < 1 + `|l| by rewrite ltr_paddr.
have [far|near] := leP d `|x - 1|; [by left|have [far|near'] := leP d `|y + l|; first by right].
have : l ^+ 2 <= 2%:R * ((1 - x) + l * (y + l)).
  rewrite apart -addrA ler_addl; apply: addr_ge0; first by rewrite subr_ge0.
  by apply: addr_ge0; exact: sqr_ge0.
have dE : l ^+ 2 = 2%:R * (d + `|l| * d).
  by rewrite -{1}[d]mul1r -mulrDl mulrA [_ * d]mulrC divfK // mulf_neq0 ?pnatr_eq0 // gt_eqF.
rewrite dE ler_pmul2l ?ltr0n // leNgt => /negP []; apply: ltr_le_add.
  by apply: le_lt_trans near; rewrite distrC ler_norm.
apply: le_trans (ler_norm _) _; rewrite normrM; apply: ler_wpmul2l => //; exact: ltW.
Qed.

Theorem no_shear_ever_proof : no_shear_ever.
Proof.
move=> R K i j l ij l0; pose d := l ^+ 2 / (2%:R * (1 + `|l|)).
have d0 : 0 < d.
  by rewrite divr_gt0 ?exprn_even_gt0 // mulr_gt0 ?ltr0n // ltr_paddr.
exists d => // beta k alpha n steps; set M := transitions _ _ _ _ _.
suff far : exists r, d <= `|M r j - shear i j l r j|.
  split=> // E; case: far => r; by rewrite E subrr normr0 leNgt d0.
have : M j j ^+ 2 + M i j ^+ 2 <= 1.
  have := @steps_contract R K beta k alpha 0 n steps (delta_mx j 0); rewrite -colE -/M.
  have -> : square (delta_mx j 0 : 'cV[R]_K) = 1.
    rewrite /square (bigD1 j) //= big1 => [|r /negbTE rj]; rewrite mxE ?eqxx ?rj ?expr0n ?expr1n ?addr0 //.
  apply: le_trans; rewrite /square (bigD1 j) //= (bigD1 i) //= !mxE addrA ler_addl.
  by apply: sumr_ge0 => r _; exact: sqr_ge0.
move=> /(outside l0) [far|far]; [exists j|exists i]; rewrite shear_entry.
  by rewrite eqxx eq_sym (negbTE ij) mulr0 subr0.
by rewrite (negbTE ij) !eqxx mulr1 sub0r opprK.
Qed.
