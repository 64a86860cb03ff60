(** Rounding to nearest in binary32 and bfloat16 follows the standard model. *)
Require Import Reals ZArith Lra.
From Flocq Require Import Core Relative.
From Attnproof.derivations.kernel Require Import statements.
Open Scope R_scope.

Lemma near_format emin prec tie x : (0 < prec)%Z ->
  near (bpow radix2 (- prec)) (bpow radix2 (emin + prec - 1)) x (round radix2 (FLT_exp emin prec) (Znearest tie) x).
Proof.
  intros P; unfold near; destruct (error_N_FLT radix2 emin prec P tie x) as (eps & eta & He & Ht & _ & ->).
  assert (half : / 2 = bpow radix2 (-1)) by reflexivity.
  rewrite half, <- bpow_plus in He, Ht; replace (-1 + (- prec + 1))%Z with (- prec)%Z in He by ring.
  replace (x * (1 + eps) + eta - x) with (eps * x + eta) by ring.
  eapply Rle_trans; [apply Rabs_triang|rewrite Rabs_mult, Rmult_plus_distr_l, <- bpow_plus].
  replace (- prec + (emin + prec - 1))%Z with (-1 + emin)%Z by ring.
  apply Rplus_le_compat; [apply Rmult_le_compat_r; [apply Rabs_pos|exact He]|exact Ht].
Qed.
