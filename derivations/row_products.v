(** Inner products of rows, and what a write does to them. *)
From mathcomp Require Import all_ssreflect all_algebra.
From Attnproof.derivations Require Export matrices.
Set Implicit Arguments.
Unset Strict Implicit.
Import GRing.Theory.
Local Open Scope ring_scope.

Section RowProducts.
Variable R : comRingType.
Implicit Types (m n K V : nat) (beta : R).

Lemma simC n (a b : 'rV[R]_n) : sim a b = sim b a.
Proof. by rewrite /sim -[a *m b^T]trmxK trmx_mul trmxK mxE. Qed.

Lemma simDl n (a b c : 'rV[R]_n) : sim (a + b) c = sim a c + sim b c.
Proof. by rewrite /sim mulmxDl mxE. Qed.

Lemma simBl n (a b c : 'rV[R]_n) : sim (a - b) c = sim a c - sim b c.
Proof. by rewrite /sim mulmxBl !mxE. Qed.

Lemma simDr n (a b c : 'rV[R]_n) : sim a (b + c) = sim a b + sim a c.
Proof. by rewrite simC simDl !(simC a). Qed.

Lemma simZl n x (a b : 'rV[R]_n) : sim (x *: a) b = x * sim a b.
Proof. by rewrite /sim -scalemxAl mxE. Qed.

Lemma simZr n x (a b : 'rV[R]_n) : sim a (x *: b) = x * sim a b.
Proof. by rewrite simC simZl simC. Qed.

(** A row times a column times a matrix. *)
Lemma row_outer n V (a b : 'rV[R]_n) (c : 'rV[R]_V) : a *m (b^T *m c) = sim a b *: c.
Proof. by rewrite mulmxA [a *m b^T]mx11_scalar mul_scalar_mx. Qed.

Lemma inner_outer m n (k : 'rV[R]_m) (v : 'rV[R]_n) (H : 'M[R]_(m, n)) :
  inner (k^T *m v) H = sim (k *m H) v.
Proof. by rewrite /inner trmx_mul trmxK -mulmxA mxtrace_mulC /mxtrace big_ord1. Qed.

(** A write is the erase factor on the state, plus the new content. *)
Lemma write_erase K V beta (k : 'rV[R]_K) (v : 'rV[R]_V) S :
  write beta k v S = erase beta k *m S + beta *: (k^T *m v).
Proof.
by rewrite /write /erase mulmxBr scalerBr opprB mulmxBl mul1mx -scalemxAl mulmxA addrA addrAC.
Qed.

(** Reading after a write. *)
Lemma read_write K V beta (q k : 'rV[R]_K) (v : 'rV[R]_V) S :
  q *m write beta k v S = q *m S - (beta * sim q k) *: (k *m S - v).
Proof. by rewrite /write mulmxBr -scalemxAr row_outer scalerA. Qed.
End RowProducts.
