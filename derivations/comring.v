(** The tactic [ring] for commutative rings of mathcomp: [Add Ring name : (comring R)], then [identity R]. *)
From mathcomp Require Import all_ssreflect all_algebra.
Require Export Ring.
Set Implicit Arguments.
Unset Strict Implicit.
Import GRing.Theory.
Local Open Scope ring_scope.

Lemma comring (R : comRingType) :
  @ring_theory (GRing.Zmodule.sort R) 0 1 +%R *%R (fun x y => x - y) -%R eq.
Proof.
split=> // *; [exact: add0r|exact: addrC|exact: addrA|exact: mul1r|exact: mulrC|exact: mulrA|exact: mulrDl|exact: subrr].
Qed.

(** The goal as an equation of sums, whose type [ring] knows. *)
Lemma as_sums (R : comRingType) (a b : R) : @eq (GRing.Zmodule.sort R) (a + 0) (b + 0) -> a = b.
Proof. by rewrite !addr0. Qed.

(** For equations between variables of R, squares and the number 2 included. *)
Ltac identity R := rewrite ?expr2 ?(mulr2n 1); apply: as_sums;
  change (GRing.Ring.zmodType (GRing.ComRing.ringType R)) with (GRing.ComRing.zmodType R); ring.
