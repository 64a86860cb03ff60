(** One gradient step on two objectives: the linear write and the delta rule. *)
From mathcomp Require Import all_ssreflect all_algebra.
From Attnproof.derivations Require Import row_products.
From Attnproof.derivations.linear Require Import statements.
Set Implicit Arguments.
Unset Strict Implicit.
Import GRing.Theory.
Local Open Scope ring_scope.

Theorem online_objectives_proof : online_objectives.
Proof.
move=> R K V S k v beta two linear square error; split; [|split; [|split]].
- by move=> H; rewrite /linear mulmxDr simDl /inner linearN /= mulNmx linearN /= -/(inner _ _) inner_outer opprD addrC addKr.
- move=> H; rewrite /square inner_outer mulmxDr.
  have -> : k *m S + k *m H - v = error + k *m H by rewrite /error addrAC.
  rewrite -/error; clearbody error; rewrite simDl !simDr (simC error (k *m H)) -mulrBr.
  set a := sim error error; set b := sim (k *m H) error; set c := sim (k *m H) (k *m H).
  have -> : a + b + (b + c) - a = 2%:R * b + c by rewrite mulr_natl mulr2n addrC -!addrA addKr.
  by rewrite mulrDr mulrA mulVf // mul1r.
- by rewrite scalerN opprK.
- by move=> E; rewrite mulmxBr -scalemxAr mulmxA [k *m k^T]mx11_scalar mul_scalar_mx scalerA E scale1r /error opprB addrC subrK.
Qed.
