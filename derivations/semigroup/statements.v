(** What is proved about updates S -> A S + B of a K x V state, to be read against the claim. *)
From mathcomp Require Import all_ssreflect all_algebra.
From Attnproof.derivations Require Import matrices transitions.
Set Implicit Arguments.
Unset Strict Implicit.
Import GRing.Theory Num.Theory.
Local Open Scope ring_scope.

(** A pair (A, B), what it does to a state, the neutral pair, and the pair that does one after another. *)
Definition update (R : ringType) K V := ('M[R]_K * 'M[R]_(K, V))%type.
Definition act (R : ringType) K V (p : update R K V) (S : 'M[R]_(K, V)) : 'M[R]_(K, V) := p.1 *m S + p.2.
Definition neutral (R : ringType) K V : update R K V := (1%:M, 0).
Definition compose (R : ringType) K V (later first : update R K V) : update R K V :=
  (later.1 *m first.1, later.1 *m first.2 + later.2).

(** semigroup.affine: a monoid that acts; neither commutative nor a group unless the matrices are empty;
    contractions, and any number of them, compose to a contraction. *)
Definition affine : Prop :=
  (forall (R : ringType) K V (p q r : update R K V) S,
    act (compose p q) S = act p (act q S) /\
    compose p (compose q r) = compose (compose p q) r /\
    compose (neutral R K V) p = p /\ compose p (neutral R K V) = p) /\
  (forall (R : ringType) K V, exists p q : update R K.+1 V.+1, compose p q <> compose q p) /\
  (forall (R : ringType) K V, exists p : update R K.+1 V, forall q,
    compose q p <> neutral R K.+1 V /\ compose p q <> neutral R K.+1 V) /\
  (forall (R : realFieldType) K V (updates : seq (update R K V)),
    (forall p, p \in updates -> contraction p.1) -> contraction (foldr (@compose R K V) (neutral R K V) updates).1).
