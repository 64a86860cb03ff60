(** A second write takes from the first what their keys share. *)
From mathcomp Require Import all_ssreflect all_algebra.
From Attnproof.derivations Require Import row_products.
From Attnproof.counterexamples.delta Require Import statements.
Set Implicit Arguments.
Unset Strict Implicit.
Import GRing.Theory.
Local Open Scope ring_scope.

Theorem overwrite_proof : overwrite.
Proof.
split; last by split; [apply/eqP|]; vm_compute.
move=> R K V k1 k2 v1 v2 n1 n2 rho o.
have read1 x : x *m write 1 k1 v1 0 = sim x k1 *: v1.
  by rewrite read_write !mulmx0 sub0r sub0r mul1r scalerN opprK.
have E : o = (1 - rho ^+ 2) *: v1 + rho *: v2.
  rewrite /o read_write !read1 n1 scale1r mul1r (simC k2) -/rho scalerBr scalerA opprB addrA addrAC.
  by rewrite -expr2 scalerBl scale1r.
split=> // orth same; have -> : o - v1 = rho *: v2 - rho ^+ 2 *: v1.
  by rewrite E scalerBl scale1r [v1 - _]addrC addrAC addrK addrC.
rewrite simBl !simZl !(simC _ (_ - _)) !simBl !simZl (simC v2 v1) orth same !mulr0 subr0 sub0r mulrN opprK.
by rewrite !mulrA -expr2 -mulrDl mulrDr mulr1 -[_ * rho * rho]mulrA -expr2.
Qed.
