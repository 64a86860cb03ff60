(** What is proved about two writes of the delta rule, over any commutative ring, to be read against the
    claims. Keys and values are rows; the state is K x V and is read as q S. *)
From mathcomp Require Import all_ssreflect all_algebra.
From Attnproof.derivations Require Import matrices.
Set Implicit Arguments.
Unset Strict Implicit.
Import GRing.Theory.
Local Open Scope ring_scope.

(** delta.overwrite: two full-strength writes at unit keys, then the first key is read. The error against
    v1, its square for orthogonal values of equal length, and the printed coefficients at rho = 99/100. *)
Definition overwrite : Prop :=
  (forall (R : comRingType) K V (k1 k2 : 'rV[R]_K) (v1 v2 : 'rV[R]_V),
    sim k1 k1 = 1 -> sim k2 k2 = 1 ->
    let rho := sim k1 k2 in
    let o := k1 *m write 1 k2 v2 (write 1 k1 v1 0) in
    o = (1 - rho ^+ 2) *: v1 + rho *: v2 /\
    (sim v1 v2 = 0 -> sim v1 v1 = sim v2 v2 ->
      sim (o - v1) (o - v1) = rho ^+ 2 * (1 + rho ^+ 2) * sim v1 v1)) /\
  (let rho : rat := 99%:R / 100%:R in 1 - rho ^+ 2 = 199%:R / 10000%:R /\ rho != 98%:R / 100%:R).

(** delta.order: what exchanging two writes changes; for the scalar key 1 and one strength it is
    beta^2 (v1 - v2); the erase factors commute iff a strength is 0, the keys are orthogonal, or every
    2 x 2 minor of the pair of keys vanishes (they are parallel). *)
Definition order : Prop :=
  (forall (R : comRingType) K V b1 b2 (k1 k2 : 'rV[R]_K) (v1 v2 : 'rV[R]_V) S,
    write b1 k1 v1 (write b2 k2 v2 S) - write b2 k2 v2 (write b1 k1 v1 S)
      = (b1 * b2 * sim k1 k2) *: (k1^T *m (k2 *m S - v2) - k2^T *m (k1 *m S - v1))) /\
  (forall (R : comRingType) V (b : R) (v1 v2 : 'rV[R]_V) S,
    write b (1%:M : 'rV_1) v1 (write b 1%:M v2 S) - write b 1%:M v2 (write b 1%:M v1 S)
      = b ^+ 2 *: (v1 - v2)) /\
  (forall (F : fieldType) K b1 b2 (k1 k2 : 'rV[F]_K),
    erase b1 k1 *m erase b2 k2 = erase b2 k2 *m erase b1 k1 <->
    b1 * b2 = 0 \/ sim k1 k2 = 0 \/ forall i j, k1 0 i * k2 0 j = k2 0 i * k1 0 j).
