(** What is proved about keys and values that share a latent, to be read against the claim. Vectors are rows:
    row t of C (T x R) is the latent of token t, its key is c W and its value c U. *)
From mathcomp Require Import all_ssreflect all_algebra.
From Attnproof.derivations Require Import matrices.
Set Implicit Arguments.
Unset Strict Implicit.
Import GRing.Theory.
Local Open Scope ring_scope.

(** mla.channel-compression: scores and outputs are those of the latents, for any weights p; the matrix of
    the scores of any number of queries has rank at most R; a given key k is scored exactly for every query,
    by some latent c, iff it lies in the range of the up-projection (the row space of W). *)
Definition channel_compression : Prop :=
  forall (F : fieldType) T K V R (C : 'M[F]_(T, R)) (W : 'M[F]_(R, K)) (U : 'M[F]_(R, V)),
    (forall (q : 'rV[F]_K) t, sim q (row t (C *m W)) = sim (q *m W^T) (row t C)) /\
    (forall p : 'I_T -> F, \sum_t p t *: row t (C *m U) = (\sum_t p t *: row t C) *m U) /\
    (forall n (Q : 'M[F]_(n, K)), (\rank (Q *m (C *m W)^T) <= R)%N) /\
    (forall k : 'rV[F]_K,
      (exists c : 'rV[F]_R, forall q : 'rV[F]_K, sim q k = sim (q *m W^T) c) <-> (k <= W)%MS).
