(** Updates of a state form a monoid, not a commutative one and not a group. *)
From mathcomp Require Import all_ssreflect all_algebra.
From Attnproof.derivations Require Import squares.
From Attnproof.derivations.semigroup Require Import statements.
Set Implicit Arguments.
Unset Strict Implicit.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Theorem affine_proof : affine.
Proof.
split; [|split; [|split]].
- move=> R K V [A1 B1] [A2 B2] [A3 B3] S; rewrite /act /compose /neutral /=; split; [|split; [|split]].
  + by rewrite mulmxDr mulmxA addrA.
  + by rewrite mulmxDr !mulmxA addrA.
  + by rewrite !mul1mx addr0.
  + by rewrite mulmx1 mulmx0 add0r.
- move=> R K V; exists (1%:M, const_mx 1), (0, 0); rewrite /compose /= !mulmx0 !mul0mx !add0r.
  by move=> /(congr1 snd) /matrixP /(_ 0 0); rewrite !mxE => /eqP; rewrite oner_eq0.
- move=> R K V; exists (0, 0) => q; rewrite /compose /neutral /= mulmx0 mul0mx.
  by split; move=> /(congr1 fst) /matrixP /(_ 0 0); rewrite !mxE => /esym /eqP; rewrite oner_eq0.
- move=> R K V; elim=> [|p updates IH] all /=; first exact: contraction1.
  apply: contraction_mul; first by apply: all; rewrite mem_head.
  by apply: IH => q qu; apply: all; rewrite inE qu orbT.
Qed.
