(** What is proved about finding a needle, to be read against the claim without reading a proof. *)
Require Import Reals List.
From Attnproof.derivations Require Import vocabulary.
From Attnproof.derivations.softmax Require Import statements.
Open Scope R_scope.

(** A deterministic algorithm that learns about the scores by reading them one by one: it answers, or it
    reads entry (i, j) and goes on as the value says. Reading is all it can do with the scores. *)
Inductive prober (A : Type) : Type :=
  | Answer : A -> prober A
  | Probe : nat -> nat -> (R -> prober A) -> prober A.
Arguments Answer {A} _.
Arguments Probe {A} _ _ _.

Fixpoint answer {A} (p : prober A) (s : nat -> nat -> R) : A :=
  match p with Answer a => a | Probe i j next => answer (next (s i j)) s end.
Fixpoint reads {A} (p : prober A) (s : nat -> nat -> R) : list (nat * nat) :=
  match p with Answer _ => nil | Probe i j next => (i, j) :: reads (next (s i j)) s end.

(** The scores with entry (i, j) set to B, and the exact output of row i (one coordinate of the values). *)
Definition raised (s : nat -> nat -> R) (i j : nat) (B : R) (a : nat) : nat -> R :=
  if Nat.eq_dec a i then changed (s a) j B else s a.
Definition output (N : nat) (s : nat -> nat -> R) (i : nat) (v : nat -> R) : R :=
  rsum N (fun t => weight N 1 (s i) t * v t).

(** softmax.needle: fewer than N^2 reads leave an entry (i, j) unread. Raising it from at most M to B keeps
    the answer and moves the output of row i towards v_j by a share of at least 1 - N e^-(B-M), the same
    share in every coordinate of the values. So below the distance |v_j - o_i| every c is exceeded, and on
    one of the two inputs an answer meant as that output is off by more than c/2. *)
Definition needle : Prop :=
  forall (A : Type) (p : prober A) (N : nat) (s : nat -> nat -> R) (M : R),
    (forall i j, (i < N)%nat -> (j < N)%nat -> s i j <= M) ->
    (length (reads p s) < N * N)%nat ->
    exists i j, (i < N)%nat /\ (j < N)%nat /\ ~ In (i, j) (reads p s) /\
      (forall B, answer p (raised s i j B) = answer p s) /\
      (forall B, M <= B -> exists share, 1 - INR N * exp (- (B - M)) <= share <= 1 /\
        forall v, output N (raised s i j B) i v - output N s i v = share * (v j - output N s i v)) /\
      (forall v c guess, 0 <= c < Rabs (v j - output N s i v) -> exists B, M <= B /\
        c < Rabs (output N (raised s i j B) i v - output N s i v) /\
        (c / 2 < Rabs (guess - output N s i v) \/ c / 2 < Rabs (guess - output N (raised s i j B) i v))).
