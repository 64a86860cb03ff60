(** What is proved about states that merge histories, over any field, to be read against the claims.

    Row t of Phi (T x m) holds the features of token t, row t of v (T x V) its values; the state of linear
    attention is Phi^T v, its normaliser Phi^T 1 does not contain the values. *)
Require Import Reals.
From Attnproof.derivations Require Import vocabulary.

(** collision.visible: [key j] is a vector of width K. Among the tokens with z_j not 0 let m have a longest
    key. Every other such token trails it, k'.k' - k'.k_j > 0, and from the stated lambda on the query
    lambda k' sees z. So some query does, whenever the keys are distinct and z is not 0. *)
Definition seen (n K : nat) (key : nat -> nat -> R) (z : nat -> R) (lambda : R) (m : nat) : R :=
  rsum n (fun j => z j * exp (lambda * dot K (key m) (key j)))%R.
Definition visible : Prop :=
  forall n K key z m, (m < n)%nat -> z m <> 0%R ->
    (forall i j, (i < n)%nat -> (j < n)%nat -> i <> j -> exists c, (c < K)%nat /\ key i c <> key j c) ->
    (forall j, (j < n)%nat -> z j <> 0%R -> (dot K (key j) (key j) <= dot K (key m) (key m))%R) ->
    let lead j := (dot K (key m) (key m) - dot K (key m) (key j))%R in
    let rest := rsum n (fun j => if Nat.eq_dec j m then 0%R else Rabs (z j)) in
    (forall j, (j < n)%nat -> j <> m -> z j <> 0%R -> (0 < lead j)%R) /\
    (forall delta lambda, (0 < delta)%R -> (0 <= lambda)%R ->
      (forall j, (j < n)%nat -> j <> m -> z j <> 0%R -> (delta <= lead j)%R) ->
      (rest = 0 \/ ln (rest / Rabs (z m)) < lambda * delta)%R -> seen n K key z lambda m <> 0%R) /\
    (exists lambda, (0 <= lambda)%R /\ seen n K key z lambda m <> 0%R).

(** From here on over any field, with matrices of mathcomp. *)
From mathcomp Require Import all_ssreflect all_algebra.
Set Implicit Arguments.
Unset Strict Implicit.
Import GRing.Theory.
Local Open Scope ring_scope.

(** collision.nullspace: more tokens than features leave a direction z that no state sees. The outputs of
    any weights a, softmax among them, move by (a.z) w. *)
Definition nullspace : Prop :=
  forall (F : fieldType) T m (Phi : 'M[F]_(T, m)), (m < T)%N ->
    exists2 z : 'cV[F]_T, z != 0 & Phi^T *m z = 0 /\
      forall V (v : 'M[F]_(T, V)) (w : 'rV[F]_V),
        Phi^T *m (v + z *m w) = Phi^T *m v /\
        (w != 0 -> v + z *m w != v) /\
        forall a : 'rV[F]_T, a *m (v + z *m w) - a *m v = (a *m z) 0 0 *: w.

(** collision.width: two histories of scalar values with one state stay merged when their difference is
    written along any direction u of any width, and their outputs are the same multiple of u apart. *)
Definition width : Prop :=
  forall (F : fieldType) T m V (Phi : 'M[F]_(T, m)) (x y : 'cV[F]_T) (b : 'M[F]_(T, V)) (u : 'rV[F]_V),
    Phi^T *m x = Phi^T *m y ->
    Phi^T *m (b + x *m u) = Phi^T *m (b + y *m u) /\
    forall a : 'rV[F]_T,
      a *m (b + x *m u) - a *m (b + y *m u) = ((a *m x) 0 0 - (a *m y) 0 0) *: u.
