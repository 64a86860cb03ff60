(** What is proved about states that are too small for their history, to be read against the claim. *)
From mathcomp Require Import all_ssreflect all_algebra.
Set Implicit Arguments.
Unset Strict Implicit.
Import GRing.Theory Num.Theory.
Local Open Scope ring_scope.

(** memory.index-bound. A history holds d bits for each of n addresses; [w i j] is e^score of query i against
    address j, so a lead of more than ln(n - 1) of its own address is w i j (n - 1) < w i i. The output of
    softmax attention for query i is [read w h i c] in coordinate c. *)
Definition read (R : realFieldType) n d (w : 'I_n -> 'I_n -> R) (h : 'M[bool]_(n, d)) (i : 'I_n) (c : 'I_d) : R :=
  (\sum_j w i j * (h j c)%:R) / \sum_j w i j.
Definition index_bound : Prop :=
  forall (R : realFieldType) n d (w : 'I_n -> 'I_n -> R) (State : finType) (S : 'M[bool]_(n, d) -> State),
    (1 < n)%N -> (forall i j, 0 < w i j) -> (forall i j, j != i -> w i j * n.-1%:R < w i i) ->
    (#|State| < 2 ^ (n * d))%N ->
    exists h h' i c, S h = S h' /\ read w h i c < 2%:R^-1 < read w h' i c /\
      forall reader : State -> R,
        ~ (`|reader (S h) - read w h i c| < 2%:R^-1 - read w h i c /\
           `|reader (S h') - read w h' i c| < read w h' i c - 2%:R^-1).
