(** When the order of two writes matters. *)
From mathcomp Require Import all_ssreflect all_algebra.
From Attnproof.derivations Require Import row_products.
From Attnproof.counterexamples.delta Require Import statements.
Set Implicit Arguments.
Unset Strict Implicit.
Import GRing.Theory.
Local Open Scope ring_scope.

Lemma cancel_left (M : zmodType) (A B x y : M) : A = B -> A + x - (B + y) = x - y.
Proof. by move=> ->; rewrite opprD addrACA subrr add0r. Qed.

Lemma exchange (R : comRingType) K V b1 b2 (k1 k2 : 'rV[R]_K) (v1 v2 : 'rV[R]_V) S :
  write b1 k1 v1 (write b2 k2 v2 S) - write b2 k2 v2 (write b1 k1 v1 S)
    = (b1 * b2 * sim k1 k2) *: (k1^T *m (k2 *m S - v2) - k2^T *m (k1 *m S - v1)).
Proof.
have once b b' (k k' : 'rV[R]_K) (v v' : 'rV[R]_V) :
  write b k v (write b' k' v' S) = S - b' *: (k'^T *m (k' *m S - v')) - b *: (k^T *m (k *m S - v))
    + (b * b' * sim k k') *: (k^T *m (k' *m S - v')).
  rewrite {1}/write read_write [k *m S - _ - v]addrAC mulmxBr scalerBr opprB addrA addrAC.
  by rewrite -scalemxAr scalerA mulrA.
rewrite !once (simC k2 k1) (mulrC b2 b1) scalerBr; apply: cancel_left; exact: addrAC.
Qed.

Theorem order_proof : order.
Proof.
split; [exact: exchange|split].
- move=> R V b v1 v2 S; rewrite exchange trmx1 !mul1mx /sim trmx1 mulmx1 mxE eqxx mulr1 -expr2.
  by congr (_ *: _); rewrite opprB addrC addrA subrK.
- move=> F K b1 b2 k1 k2.
  have swap : erase b1 k1 *m erase b2 k2 - erase b2 k2 *m erase b1 k1
      = (b1 * b2 * sim k1 k2) *: (k1^T *m k2 - k2^T *m k1).
    have prod b b' (k k' : 'rV[F]_K) : erase b k *m erase b' k'
        = 1%:M - b *: (k^T *m k) - b' *: (k'^T *m k') + (b * b' * sim k k') *: (k^T *m k').
      rewrite /erase mulmxBl mul1mx mulmxBr mulmx1 -scalemxAl -scalemxAr -mulmxA row_outer -scalemxAr !scalerA.
      by rewrite opprB addrA addrAC; congr (_ + _); rewrite addrAC.
    rewrite !prod (simC k2 k1) (mulrC b2 b1) scalerBr; apply: cancel_left; exact: addrAC.
  split=> [E|H].
    have := swap; rewrite E subrr => /esym /eqP; rewrite scaler_eq0 => /orP [|].
      by rewrite mulf_eq0 => /orP [/eqP|/eqP]; [left|right; left].
    move=> /eqP Z; right; right => i j; have := congr1 (fun M : 'M[F]_K => M i j) Z.
    by rewrite !mxE !big_ord1 !mxE => /eqP; rewrite subr_eq0 => /eqP.
  apply/eqP; rewrite -subr_eq0 swap; case: H => [->|[->|par]]; rewrite ?mul0r ?mulr0 ?scale0r //.
  have -> : k1^T *m k2 = k2^T *m k1 by apply/matrixP => i j; rewrite !mxE !big_ord1 !mxE.
  by rewrite subrr scaler0.
Qed.
