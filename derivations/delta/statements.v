(** What is proved about the delta rule over any commutative ring, to be read against the claim.

    Keys, values and the query are rows; the state is K x V and is read as q S. *)
From mathcomp Require Import all_ssreflect all_algebra.
From Attnproof.derivations Require Import matrices.
Set Implicit Arguments.
Unset Strict Implicit.
Import GRing.Theory.
Local Open Scope ring_scope.

Section Run.
Variables (R : comRingType) (K V : nat).
Variables (beta : nat -> R) (k : nat -> 'rV[R]_K) (v : nat -> 'rV[R]_V).

(** The state after n writes from zero, and what n later writes from number j on leave of a column c. *)
Fixpoint state (n : nat) : 'M[R]_(K, V) := if n is m.+1 then write (beta m) (k m) (v m) (state m) else 0.
Fixpoint carried (c : 'cV[R]_K) (j n : nat) : 'cV[R]_K :=
  if n is m.+1 then erase (beta (j + m)) (k (j + m)) *m carried c j m else c.
End Run.

(** delta.overwrite-general: the output is a sum over tokens of what later erasures left of each write. For
    later writes to one unit key, and for mutually orthogonal later keys, the share of the first value is a
    closed form; the query is the first key, a unit vector. *)
Definition overwrite_general : Prop :=
  (forall (R : comRingType) K V beta (k : nat -> 'rV[R]_K) (v : nat -> 'rV[R]_V) n (q : 'rV[R]_K),
    q *m state beta k v n
      = \sum_(j < n) (beta j * (q *m carried beta k (k j)^T j.+1 (n - j.+1)) 0 0) *: v j) /\
  (forall (R : comRingType) K beta (k : nat -> 'rV[R]_K) (x : 'rV[R]_K) n,
    sim (k 0%N) (k 0%N) = 1 -> sim x x = 1 -> (forall i, k i.+1 = x) ->
    let rho := sim (k 0%N) x in
    (k 0%N *m carried beta k (k 0%N)^T 1 n) 0 0 = 1 - rho ^+ 2 * (1 - \prod_(i < n) (1 - beta i.+1))) /\
  (forall (R : comRingType) K beta (k : nat -> 'rV[R]_K) n,
    sim (k 0%N) (k 0%N) = 1 -> (forall i j, i != j -> sim (k i.+1) (k j.+1) = 0) ->
    (k 0%N *m carried beta k (k 0%N)^T 1 n) 0 0 = 1 - \sum_(j < n) beta j.+1 * sim (k 0%N) (k j.+1) ^+ 2).
