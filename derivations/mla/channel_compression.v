(** Scores and outputs through a shared latent. *)
From mathcomp Require Import all_ssreflect all_algebra.
From Attnproof.derivations.mla Require Import statements.
From Attnproof.derivations Require Import row_products.
Set Implicit Arguments.
Unset Strict Implicit.
Import GRing.Theory.
Local Open Scope ring_scope.

Theorem channel_compression_proof : channel_compression.
Proof.
move=> F T K V R C W U.
have absorb (q : 'rV[F]_K) (c : 'rV[F]_R) : sim q (c *m W) = sim (q *m W^T) c.
  by rewrite /sim trmx_mul mulmxA.
split; [|split; [|split]].
- by move=> q t; rewrite row_mul absorb.
- by move=> p; rewrite mulmx_suml; apply: eq_bigr => t _; rewrite row_mul -scalemxAl.
- move=> n Q; rewrite trmx_mul mulmxA; exact: leq_trans (mxrankM_maxl _ _) (rank_leq_col _).
- move=> k; split=> [[c exact_]|/submxP [c ->]]; last by exists c => q; exact: absorb.
  apply/submxP; exists c; apply/rowP => i; have := exact_ (delta_mx 0 i).
  by rewrite -absorb /sim -!rowE !mxE.
Qed.
