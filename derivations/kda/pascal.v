(** Pascal's triangle in binary numbers, for binomials too large to count in unary. *)
From mathcomp Require Import all_ssreflect.
Require Import NArith.
Set Implicit Arguments.
Unset Strict Implicit.

Fixpoint next (last : N) (row : seq N) : seq N := if row is x :: rest then N.add last x :: next x rest else [:: last].
Definition pascal (n : nat) : seq N := iter n (next N0) [:: Npos xH].

Lemma nth_next last row i :
  nat_of_bin (nth N0 (next last row) i)
    = (if i is j.+1 then nat_of_bin (nth N0 row j) else nat_of_bin last) + nat_of_bin (nth N0 row i).
Proof.
elim: row last i => [|x row IH] last [|i] /=; rewrite ?nat_of_add_bin ?addn0 ?nth_nil //.
by rewrite IH; case: i.
Qed.

Lemma pascal_binomial n i : nat_of_bin (nth N0 (pascal n) i) = 'C(n, i).
Proof.
elim: n i => [|n IH] [|i]; rewrite ?bin0n //=; first by case: i.
  by rewrite nth_next IH !bin0 add0n.
by rewrite nth_next !IH binS addnC.
Qed.

Lemma power_binary (a : N) n : nat_of_bin (iter n (N.mul a) (Npos xH)) = nat_of_bin a ^ n.
Proof. by elim: n => [|n IH]; rewrite ?expn0 //= nat_of_mul_bin IH expnS. Qed.

Lemma less_binary (x d : N) : nat_of_bin x < nat_of_bin (N.add x (N.add (Npos xH) d)).
Proof. by rewrite !nat_of_add_bin addnA addn1 ltnS leq_addr. Qed.

Lemma large_binomial : 10 ^ 17 < 'C(62, 31).
Proof.
rewrite -(power_binary (Npos 10)) -pascal_binomial.
have -> : nth N0 (pascal 62) 31
    = N.add (iter 17 (N.mul (Npos 10)) (Npos xH)) (N.add (Npos xH) (Npos 365428353255261087)) by vm_compute.
exact (less_binary (iter 17 (N.mul (Npos 10)) (Npos xH)) (Npos 365428353255261087)).
Qed.
