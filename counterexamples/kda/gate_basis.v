(** Which projectors are gates or transitions. *)
From mathcomp Require Import all_ssreflect all_algebra.
From Attnproof.counterexamples.kda Require Import statements transition_entries.
Set Implicit Arguments.
Unset Strict Implicit.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Theorem gate_basis_proof : gate_basis.
Proof.
split; [|split; [|split]].
- move=> F alpha two /matrixP /(_ 0 (lift 0 0)); rewrite !mxE mulr0n => /eqP.
  by rewrite eq_sym invr_eq0 (negbTE two).
- move=> F x xx; have two : 2%:R != 0 :> F by apply: contra_eq_neq xx => ->; rewrite mul0r eq_sym oner_eq0.
  have half : x * x = 2%:R^-1 by apply: (mulfI two); rewrite mulfV // -expr2.
  have rest : 1 - 2%:R^-1 = 2%:R^-1 :> F by apply: (mulfI two); rewrite mulrBr mulr1 mulfV // mulr2n addrK.
  apply/matrixP => a b; rewrite transition_entry !mxE mulr1 mul1r.
  by case: a => [[|[|a]] a2] //; case: b => [[|[|b]] b2] //; rewrite /= ?mulrNN ?mulrN ?mulNr half ?opprK ?sub0r ?add0r.
- move=> R; exists (Num.sqrt 2%:R^-1); rewrite sqr_sqrtr ?invr_ge0 ?ler0n //.
  by rewrite mulfV // pnatr_eq0.
- move=> F n beta k alpha n0 E; have entry a b := congr1 (fun M : 'M[F]_n.+3 => M a b) E.
  pose o : 'I_n.+3 := @Ordinal n.+3 1 isT; pose w : 'I_n.+3 := @Ordinal n.+3 2 isT.
  have t0 : n.+3%:R^-1 != 0 :> F by rewrite invr_eq0.
  have := entry 0 w; rewrite transition_entry mxE sub0r => ow.
  have := entry o w; rewrite transition_entry mxE sub0r -ow => same.
  have := entry 0 0; rewrite transition_entry mxE eqxx => first.
  have := entry o 0; rewrite transition_entry mxE sub0r -first => /eqP.
  have : - (beta * (k 0 0 * k 0 w)) * alpha 0 w != 0 by rewrite ow.
  rewrite !(mulf_eq0, oppr_eq0, negb_or) => /andP [/andP [b0 /andP [k0 kw]] aw].
  move: same => /(mulIf aw) /oppr_inj /(mulfI b0) /(mulIf kw) ->.
  move=> /eqP; rewrite mulrBl mulNr mul1r -[X in X = _]add0r => /addIr a0.
  by move: first t0; rewrite -a0 mulr0 => <-; rewrite eqxx.
Qed.
