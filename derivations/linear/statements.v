(** What is proved about linear attention and its online updates, over any commutative ring or field.

    Vectors are rows. Tokens are numbered by the finite set 'I_T. *)
From mathcomp Require Import all_ssreflect all_algebra.
From Attnproof.derivations Require Import matrices.
Set Implicit Arguments.
Unset Strict Implicit.
Import GRing.Theory.
Local Open Scope ring_scope.

(** linear.associativity: with sim(q, k) = phi(q).phi(k) both sums over tokens factor through the state
    S = sum phi(k_j)^T v_j and the normaliser z = sum phi(k_j). [phi j] are the features of key j. *)
Definition associativity : Prop :=
  forall (R : comRingType) T m V (q : 'rV[R]_m) (phi : 'I_T -> 'rV[R]_m) (v : 'I_T -> 'rV[R]_V),
    \sum_j sim q (phi j) *: v j = q *m (\sum_j (phi j)^T *m v j) /\
    \sum_j sim q (phi j) = sim q (\sum_j phi j).

(** linear.online-objectives. The gradient G of f at S is characterised without limits: f(S + H) - f(S) is
    <G, H> = tr(G^T H), exactly for the linear objective, and up to the term quadratic in H for the other.
    Keys k and values v are rows; the state S is K x V. *)
Definition online_objectives : Prop :=
  forall (R : fieldType) K V (S : 'M[R]_(K, V)) (k : 'rV[R]_K) (v : 'rV[R]_V) (beta : R),
    2%:R != 0 :> R ->
    let linear (X : 'M[R]_(K, V)) := - sim (k *m X) v in
    let square (X : 'M[R]_(K, V)) := 2%:R^-1 * sim (k *m X - v) (k *m X - v) in
    let error := k *m S - v in
    (forall H, linear (S + H) - linear S = inner (- (k^T *m v)) H) /\
    (forall H, square (S + H) - square S = inner (k^T *m error) H + 2%:R^-1 * sim (k *m H) (k *m H)) /\
    S - beta *: (- (k^T *m v)) = S + beta *: (k^T *m v) /\
    (beta * sim k k = 1 -> k *m (S - beta *: (k^T *m error)) = v).
