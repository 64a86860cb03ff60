(** Words of linear algebra that several statements use. Definitions only. Vectors are rows. *)
From mathcomp Require Import all_ssreflect all_algebra.
Set Implicit Arguments.
Unset Strict Implicit.
Import GRing.Theory.
Local Open Scope ring_scope.

(** The inner product of two rows, and of two matrices, tr(A^T B). *)
Definition sim {R : comRingType} {n} (a b : 'rV[R]_n) : R := (a *m b^T) 0 0.
Definition inner {R : comRingType} {m n} (A B : 'M[R]_(m, n)) : R := \tr (A^T *m B).

(** The erase factor I - beta k^T k, and one write of the delta rule on a K x V state. *)
Definition erase {R : comRingType} {K} (beta : R) (k : 'rV[R]_K) : 'M[R]_K := 1%:M - beta *: (k^T *m k).
Definition write {R : comRingType} {K V} (beta : R) (k : 'rV[R]_K) (v : 'rV[R]_V) (S : 'M[R]_(K, V)) :
  'M[R]_(K, V) := S - beta *: (k^T *m (k *m S - v)).
