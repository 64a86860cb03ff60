(** The chain rule: divergence between blocks plus divergence within them. *)
Require Import Reals Bool Lra Lia PeanoNat.
From Attnproof.derivations Require Import finite_sums.
From Attnproof.derivations.softmax Require Import statements.
From Attnproof.derivations.sparse Require Import statements parts.
Open Scope R_scope.

(** Every token is in exactly one block. *)
Lemma sum_over_blocks n B block f : (forall j, (j < n)%nat -> (block j < B)%nat) ->
  rsum B (fun b => part n (fun j => Nat.eqb (block j) b) f) = rsum n f.
Proof.
  intros H; unfold part; rewrite rsum_swap; apply rsum_ext; intros j Hj; specialize (H j Hj).
  revert H; generalize (block j) as b; induction B as [|B IH]; intros b Hb; [lia|cbn [rsum]].
  destruct (Nat.eq_dec b B) as [->|Hne].
  - rewrite Nat.eqb_refl, (rsum_ext B _ (fun _ => 0)), rsum_const; [ring|].
    intros i Hi; destruct (Nat.eqb_spec B i); [lia|reflexivity].
  - rewrite IH by lia; destruct (Nat.eqb_spec b B); [lia|ring].
Qed.

Theorem kl_chain_proof : kl_chain.
Proof.
  intros n B block a p HB H A P; unfold divergence.
  rewrite <- rsum_plus, <- (sum_over_blocks n B block) by exact HB; apply rsum_ext; intros b _.
  set (here := fun j => Nat.eqb (block j) b).
  assert (nonneg : forall j, (j < n)%nat -> 0 <= (if here j then a j else 0))
    by (intros j Hj; destruct (here j); [apply (H j Hj)|lra]).
  destruct (Req_dec (A b) 0) as [Z|Z].
  - assert (E : forall j, (j < n)%nat -> here j = true -> a j = 0).
    { intros j Hj Hh; pose proof (rsum_zero_all n _ nonneg Z j Hj) as E; cbv beta in E; rewrite Hh in E; exact E. }
    rewrite Z, (part_ext n here _ (fun _ => 0)), part_const; [ring|].
    intros j Hj Hh; rewrite (E j Hj Hh); ring.
  - assert (PA : 0 < A b) by (destruct (rsum_nonneg n _ nonneg) as [L|L]; [exact L|exfalso; apply Z; symmetry; exact L]).
    assert (PP : 0 < P b).
    { destruct (Rle_lt_or_eq_dec 0 (P b)) as [L|L]; [|exact L|].
      - apply rsum_nonneg; intros j Hj; destruct (Nat.eqb (block j) b); [left; apply (H j Hj)|lra].
      - exfalso; apply Z; apply Rle_antisym; [|lra].
        replace 0 with (part n here (fun _ => 0)) by (rewrite part_const; ring).
        apply part_le; intros j Hj Hh; exfalso.
        assert (T : p j <= P b).
        { unfold P, block_mass, part; pose proof (rsum_term_le n (fun i => if Nat.eqb (block i) b then p i else 0) j) as T.
          cbv beta in T; unfold here in Hh; rewrite Hh in T; apply T; [|exact Hj].
          intros i Hi; destruct (Nat.eqb (block i) b); [left; apply (H i Hi)|lra]. }
        pose proof (proj2 (H j Hj)); lra. }
    rewrite <- part_scal; fold here.
    assert (E : A b * (ln (A b) - ln (P b)) = part n here (fun j => (ln (A b) - ln (P b)) * a j))
      by (rewrite part_scal; change (part n here a) with (A b); ring).
    rewrite E; unfold part; rewrite <- rsum_plus; apply rsum_ext; intros j Hj; destruct (here j); [|ring].
    destruct (H j Hj) as [[Aj|Aj] Pj]; [|rewrite <- Aj; field; exact Z].
    assert (forall x y, 0 < x -> 0 < y -> ln (x / y) = ln x - ln y) as L
      by (intros x y Hx Hy; unfold Rdiv; rewrite ln_mult, ln_Rinv by (try apply Rinv_0_lt_compat; assumption); ring).
    rewrite !L by assumption; field; exact Z.
Qed.
