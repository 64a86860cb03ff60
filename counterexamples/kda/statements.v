(** What no step of KDA does, to be read against the claims. *)
From mathcomp Require Import all_ssreflect all_algebra.
From Attnproof.derivations Require Import matrices transitions.
Set Implicit Arguments.
Unset Strict Implicit.
Import GRing.Theory Num.Theory.
Local Open Scope ring_scope.

(** kda.no-shear: over any field one transition is no shear, whatever key, strength and decays; a diagonal
    plus a product of a column and a row is one. *)
Definition no_shear : Prop :=
  forall (F : fieldType) K (i j : 'I_K) (lambda : F), i != j -> lambda != 0 ->
    (forall beta (k alpha : 'rV[F]_K), transition beta k alpha <> shear i j lambda) /\
    diag_mx (const_mx 1) + (- lambda *: delta_mx i 0 : 'cV[F]_K) *m (delta_mx 0 j : 'rV[F]_K)
      = shear i j lambda.

(** kda.no-shear-ever: no number of bounded steps makes a shear; column j of their product stays away from
    that of the shear by a distance that depends on lambda only, so no limit of products is a shear. *)
Definition no_shear_ever : Prop :=
  forall (R : realFieldType) K (i j : 'I_K) (lambda : R), i != j -> lambda != 0 ->
    exists2 distance : R, 0 < distance & forall (beta : nat -> R) (k alpha : nat -> 'rV[R]_K) n,
      (forall t, (t < n)%N -> bounded_step (beta t) (k t) (alpha t)) ->
      transitions beta k alpha 0 n <> shear i j lambda /\
      exists r, distance <= `|transitions beta k alpha 0 n r j - shear i j lambda r j|.

(** kda.gate-basis: the projector on (1, 1) is no gate, and is one transition for k = (x, -x) with
    2 x^2 = 1, strength 1 and no decay (such an x exists in every real closed field); the projector on
    (1, ..., 1) in K >= 3 channels is no transition. *)
Definition gate_basis : Prop :=
  (forall (F : fieldType) (alpha : 'rV[F]_2), 2%:R != 0 :> F -> diag_mx alpha <> const_mx 2%:R^-1) /\
  (forall (F : fieldType) (x : F), 2%:R * x ^+ 2 = 1 ->
    transition 1 (\row_c (if c == 0 then x else - x) : 'rV[F]_2) (const_mx 1) = const_mx 2%:R^-1) /\
  (forall R : rcfType, exists x : R, 2%:R * x ^+ 2 = 1) /\
  (forall (F : fieldType) n beta (k alpha : 'rV[F]_n.+3), n.+3%:R != 0 :> F ->
    transition beta k alpha <> const_mx n.+3%:R^-1).
