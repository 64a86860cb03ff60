(** A function of the history is a function of the state iff equal states have equal values. *)
From mathcomp Require Import all_ssreflect all_algebra.
From Attnproof.derivations.state Require Import statements.
Set Implicit Arguments.
Unset Strict Implicit.

Theorem factor_criterion_proof : factor_criterion.
Proof.
split.
- move=> History State Query Answer S F; split=> [[R [single right]] h h' E q|same].
    by apply: (single (S h) q); rewrite // E.
  exists (fun s q a => exists2 h, S h = s & F h q = a); split=> [s q a b [h hs <-] [h' hs' <-]|h q].
    by apply: same; rewrite hs.
  by exists h.
- move=> History State Answer some S F; split=> [[R right] h h' E|same]; first by rewrite -!right E.
  exists (fun s => if [pick h | S h == s] is Some h then F h else some) => h.
  by case: pickP => [h' /eqP /same|/(_ h)]; rewrite ?eqxx.
Qed.
