(** What a write takes from the state, and what gives it back. *)
From mathcomp Require Import all_ssreflect all_algebra.
From Attnproof.derivations Require Import row_products.
From Attnproof.derivations.state Require Import statements.
Set Implicit Arguments.
Unset Strict Implicit.
Import GRing.Theory.
Local Open Scope ring_scope.

Lemma restored (R : comRingType) K V beta (k : 'rV[R]_K) (v : 'rV[R]_V) S :
  write beta k v S + beta *: (k^T *m (k *m S - v)) = S.
Proof. by rewrite /write subrK. Qed.

Lemma merged (R : comRingType) K V (k : 'rV[R]_K) (v : 'rV[R]_V) S w :
  sim k k = 1 -> write 1 k v (S + k^T *m w) = write 1 k v S.
Proof.
move=> kk; rewrite /write !scale1r [k *m (S + _)]mulmxDr row_outer kk scale1r [k *m S + w - v]addrAC mulmxDr.
by rewrite [X in _ - X]addrC addrKA.
Qed.

Theorem no_rollback_proof : no_rollback.
Proof.
split; [|split; [|split; [|split]]].
- move=> R K V k v kk; split=> S; first by move=> w; exact: merged.
  rewrite {1}/write read_write kk mulr1 !scale1r opprB addrCA subrr addr0.
  by rewrite -[v - _]opprB mulmxN opprK -[k^T *m _]scale1r restored.
- move=> R K V k v kk [undo right].
  have /(congr1 (fun M => (k *m M) 0 0)) : 0 = 0 + k^T *m const_mx 1 :> 'M[R]_(K, V.+1).
    by rewrite -{1}(right 0) -(merged v 0 (const_mx 1) kk) right.
  by rewrite add0r mulmx0 row_outer kk scale1r !mxE => /eqP; rewrite eq_sym oner_eq0.
- by move=> R K V beta k v; exists (fun S r => S + beta *: (k^T *m (r - v))) => S; exact: restored.
- move=> F K V beta k alpha v.
  exists (fun S r kept => \matrix_(c, j)
    if insub c is Some zero then kept zero 0 j else (S + beta *: (k^T *m (r - v))) c j / alpha 0 c) => S decayed.
  rewrite restored; apply/matrixP => c j; rewrite mxE; case: insubP => [zero _ <-|alpha0]; first by rewrite mxE.
  by rewrite /decayed mul_diag_mx mxE mulrC mulKf.
- by move=> Token cache t; rewrite -cats1 take_size_cat.
Qed.
