(** What is proved about gates that do not know the future, to be read against the claims. *)
Require Import Reals.
From Attnproof.derivations Require Import vocabulary.
Open Scope R_scope.

(** gate.two-lifetimes: keep at least a after L1 steps and at most b after L2 steps with one gate. *)
Definition satisfies (g a L1 b L2 : R) : Prop := 0 < g <= 1 /\ a <= Rpower g L1 /\ Rpower g L2 <= b.
Definition two_lifetimes : Prop :=
  (forall a b L1 L2, 0 < a <= 1 -> 0 < b <= 1 -> 0 < L1 -> 0 < L2 ->
    ((exists g, satisfies g a L1 b L2) <-> Rpower a (/ L1) <= Rpower b (/ L2))) /\
  (forall a b L g, 0 < L -> b < a -> ~ satisfies g a L b L) /\
  (** n > K demands, no two of which one gate can meet: whatever channel each is given, some two share
      one, so no choice of gates meets all. *)
  (forall n K (demand : nat -> R -> Prop) (channel : nat -> nat) (gate : nat -> R), (K < n)%nat ->
    (forall i j g, (i < n)%nat -> (j < n)%nat -> i <> j -> ~ (demand i g /\ demand j g)) ->
    (forall i, (i < n)%nat -> (channel i < K)%nat) ->
    ~ forall i, (i < n)%nat -> demand i (gate (channel i))).

(** gate.causal: the same state s cannot be near two wanted states; the middle is the best. *)
Definition distance (n : nat) (x y : nat -> R) : R := sqrt (dot n (fun i => x i - y i) (fun i => x i - y i)).
Definition causal : Prop :=
  forall n (w1 w2 : nat -> R),
    (forall s, distance n w1 w2 / 2 <= Rmax (distance n s w1) (distance n s w2)) /\
    (let middle i := (w1 i + w2 i) / 2 in
     distance n middle w1 = distance n w1 w2 / 2 /\ distance n middle w2 = distance n w1 w2 / 2).
