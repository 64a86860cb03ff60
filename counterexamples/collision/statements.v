(** What is proved about states that merge histories, over any field, to be read against the claims.

    Row t of Phi (T x m) holds the features of token t, row t of v (T x V) its values; the state of linear
    attention is Phi^T v, its normaliser Phi^T 1 does not contain the values. *)
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
