(** What is proved about what a state keeps of its history, to be read against the claims. *)
From mathcomp Require Import all_ssreflect all_algebra.
From Attnproof.derivations Require Import matrices.
Set Implicit Arguments.
Unset Strict Implicit.
Import GRing.Theory.
Local Open Scope ring_scope.

(** state.factor-criterion: F can be answered from the state iff equal states have equal answers. A reader is
    a relation between states and answers that gives a state one answer at most; where histories are
    finitely many (and some answer exists) it is a function. Answers may depend on a query. *)
Definition factor_criterion : Prop :=
  (forall (History State Query Answer : Type) (S : History -> State) (F : History -> Query -> Answer),
    (exists R : State -> Query -> Answer -> Prop,
      (forall s q a b, R s q a -> R s q b -> a = b) /\ forall h q, R (S h) q (F h q)) <->
    (forall h h', S h = S h' -> forall q, F h q = F h' q)) /\
  (forall (History : finType) (State : eqType) (Answer : Type) (some : Answer)
      (S : History -> State) (F : History -> Answer),
    (exists R : State -> Answer, forall h, R (S h) = F h) <-> (forall h h', S h = S h' -> F h = F h')).

(** state.no-rollback. At strength 1 and a unit key a write merges all S + k^T w, so no function of the state
    after the token, which may use the token, is the state before. The V numbers k S restore it, for every
    strength and key; at strength 1 they are simply written back. With decays alpha the V numbers
    k Diag(alpha) S and the rows of S whose decay is 0 restore it. A cache drops its last entry. *)
Definition no_rollback : Prop :=
  (forall (R : comRingType) K V (k : 'rV[R]_K) (v : 'rV[R]_V), sim k k = 1 ->
    (forall S w, write 1 k v (S + k^T *m w) = write 1 k v S) /\
    (forall S, write 1 k (k *m S) (write 1 k v S) = S)) /\
  (forall (R : comRingType) K V (k : 'rV[R]_K) (v : 'rV[R]_V.+1), sim k k = 1 ->
    ~ exists undo : 'M[R]_(K, V.+1) -> 'M[R]_(K, V.+1), forall S, undo (write 1 k v S) = S) /\
  (forall (R : comRingType) K V beta (k : 'rV[R]_K) (v : 'rV[R]_V),
    exists undo : 'M[R]_(K, V) -> 'rV[R]_V -> 'M[R]_(K, V), forall S, undo (write beta k v S) (k *m S) = S) /\
  (forall (F : fieldType) K V beta (k alpha : 'rV[F]_K) (v : 'rV[F]_V),
    exists undo : 'M[F]_(K, V) -> 'rV[F]_V -> ({c | alpha 0 c == 0} -> 'rV[F]_V) -> 'M[F]_(K, V), forall S,
      let decayed := diag_mx alpha *m S in
      undo (write beta k v decayed) (k *m decayed) (fun c => row (sval c) S) = S) /\
  (forall (Token : Type) (cache : seq Token) (t : Token), take (size cache) (rcons cache t) = cache).
