(** What is proved about the first-order expansion of softmax, to be read against the claim. *)
Require Import Reals.
From Attnproof.derivations Require Import vocabulary.
Open Scope R_scope.

(** Two tokens with logits x and -x: weights and output for values v0 and v1. *)
Definition first_weight (x : R) : R := exp x / (exp x + exp (- x)).
Definition output (x v0 v1 : R) : R := first_weight x * v0 + (1 - first_weight x) * v1.
(** Its expansion to first order at x = 0; the value and the slope there are part of the statement. *)
Definition first_order_weight (x : R) : R := (1 + x) / 2.
Definition first_order (x v0 v1 : R) : R := first_order_weight x * v0 + (1 - first_order_weight x) * v1.

(** expansion.leaves-hull: with values 1 and -1 softmax gives tanh x and the expansion x; weights 3/2 and
    -1/2 at x = 2; the error is at most x^3/3; the hull [-1, 1] is left exactly when |x| > 1. *)
Definition leaves_hull : Prop :=
  (first_weight 0 = first_order_weight 0 /\ derivable_pt_lim first_weight 0 (1 / 2)) /\
  (forall x, output x 1 (-1) = tanh x /\ first_order x 1 (-1) = x) /\
  first_order_weight 2 = 3 / 2 /\ 1 - first_order_weight 2 = - 1 / 2 /\
  (forall x, 0 <= x -> 0 <= x - tanh x <= x ^ 3 / 3) /\
  (forall x, ~ (-1 <= first_order x 1 (-1) <= 1) <-> Rabs x > 1).
