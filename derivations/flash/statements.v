(** What is proved about online softmax, to be read against the claim. *)
Require Import Reals List Permutation.
From Attnproof.derivations Require Import vocabulary.
Open Scope R_scope.

(** A triple (m, l, o): a reference, the sum of e^(s - m), and the sum of e^(s - m) v over some tokens
    (one coordinate of the values). Merging rescales both to the larger reference and adds. *)
Definition triple : Type := R * R * R.
Definition merge (a b : triple) : triple :=
  let '(m1, l1, o1) := a in
  let '(m2, l2, o2) := b in
  let m := Rmax m1 m2 in
  (m, l1 * exp (m1 - m) + l2 * exp (m2 - m), o1 * exp (m1 - m) + o2 * exp (m2 - m)).

(** A tiling: single tokens with any reference, merged in any order. *)
Inductive tiling : Type :=
  | Token : nat -> R -> tiling
  | Merge : tiling -> tiling -> tiling.
Fixpoint tokens (t : tiling) : list nat :=
  match t with Token j _ => j :: nil | Merge a b => tokens a ++ tokens b end.
Fixpoint value (s v : nat -> R) (t : tiling) : triple :=
  match t with
  | Token j m => (m, exp (s j - m), exp (s j - m) * v j)
  | Merge a b => merge (value s v a) (value s v b)
  end.

(** flash.online-softmax: merging is associative and commutative, and o/l of every tiling of n tokens, in
    any order and with any references, is the softmax output. *)
Definition online_softmax : Prop :=
  (forall a b, merge a b = merge b a) /\
  (forall a b c, merge (merge a b) c = merge a (merge b c)) /\
  (forall n s v t, Permutation (tokens t) (seq 0 n) ->
    let '(_, l, o) := value s v t in
    o / l = rsum n (fun j => exp (s j) * v j) / rsum n (fun j => exp (s j))).
