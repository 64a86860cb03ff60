(** On a face of the simplex the minimiser is the renormalised softmax. *)
Require Import Reals Bool Lra Lia.
From Attnproof.derivations Require Import finite_sums.
From Attnproof.derivations.softmax Require Import statements weights entropic_ot.
From Attnproof.derivations.sparse Require Import statements parts.
Open Scope R_scope.

Section Face.
Variables (n : nat) (keep : nat -> bool) (tau : R) (s : nat -> R).
Hypotheses (Hk : (0 < size n keep)%nat) (Ht : 0 < tau).
Let p := weight n tau s.
Let mass := part n keep p.
Let q := kept n keep p.

Lemma tokens_pos : (0 < n)%nat.
Proof. pose proof (size_split n keep); lia. Qed.

Lemma p_pos j : 0 < p j.
Proof. apply weight_pos, tokens_pos. Qed.

Lemma mass_pos : 0 < mass.
Proof. apply part_pos; [exact Hk|intros j _; apply p_pos]. Qed.

Lemma q_on_face : on_face n keep q.
Proof.
  pose proof mass_pos as M; split; [split|].
  - intros j _; unfold q, kept; destruct (keep j); [|lra].
    left; apply Rdiv_lt_0_compat; [apply p_pos|exact M].
  - unfold q, kept; fold mass; rewrite (rsum_ext n _ (fun j => / mass * (if keep j then p j else 0)))
      by (intros j _; destruct (keep j); unfold Rdiv; ring).
    rewrite rsum_scal; fold (part n keep p); fold mass; field; lra.
  - intros j _ E; unfold q, kept; rewrite E; reflexivity.
Qed.

(** Every divergence from p on the face is the one from q less ln (mass). *)
Lemma divergence_face a : on_face n keep a -> divergence n a p = divergence n a q - ln mass.
Proof.
  intros [[A0 A1] Z]; unfold divergence.
  rewrite (rsum_ext n (fun j => a j * (ln (a j) - ln (p j)))
    (fun j => a j * (ln (a j) - ln (q j)) - ln mass * a j)).
  - rewrite rsum_minus, rsum_scal, A1; ring.
  - intros j Hj; unfold q, kept; fold mass; destruct (keep j) eqn:E; [|rewrite Z by assumption; ring].
    unfold Rdiv; rewrite ln_mult, ln_Rinv;
      [ring|exact mass_pos|apply p_pos|apply Rinv_0_lt_compat, mass_pos].
Qed.

Lemma divergence_face_bound a : on_face n keep a -> 0 <= divergence n a q /\
  (divergence n a q = 0 -> forall j, (j < n)%nat -> a j = q j).
Proof.
  intros [[A0 A1] Z]; destruct q_on_face as [[Q0 Q1] QZ].
  set (term j := a j * (ln (a j) - ln (q j)) - (a j - q j)).
  assert (cases : forall j, (j < n)%nat -> 0 <= term j /\ (term j = 0 -> a j = q j)).
  { intros j Hj; unfold term; destruct (keep j) eqn:E.
    - assert (P : 0 < q j) by (unfold q, kept; rewrite E; apply Rdiv_lt_0_compat; [apply p_pos|exact mass_pos]).
      split; [apply term_bound|apply term_equal]; try exact P; apply A0, Hj.
    - rewrite Z, QZ by assumption; split; lra. }
  assert (D : divergence n a q = rsum n term).
  { unfold term; rewrite rsum_minus, rsum_minus, A1, Q1; unfold divergence; ring. }
  rewrite D; split; [apply rsum_nonneg; intros j Hj; apply cases, Hj|].
  intros E j Hj; apply cases; [exact Hj|]; apply (rsum_zero_all n term); [|exact E|exact Hj].
  intros i Hi; apply cases, Hi.
Qed.

Lemma divergence_self : divergence n q q = 0.
Proof. unfold divergence; rewrite (rsum_ext n _ (fun _ => 0)), rsum_const by (intros; ring); ring. Qed.
End Face.

Theorem face_proof : face.
Proof.
  intros n keep tau s Hk Ht p q; pose proof (q_on_face n keep tau s Hk) as Q; fold p q in Q.
  split; [exact Q|]; intros a Ha.
  pose proof (tokens_pos n keep Hk) as Hn.
  pose proof (divergence_face n keep tau s Hk a Ha) as Da; pose proof (divergence_face n keep tau s Hk q Q) as Dq.
  pose proof (divergence_face_bound n keep tau s Hk a Ha) as [B0 B1].
  fold p in Da, Dq, B0, B1; fold q in Da, Dq, B0, B1.
  pose proof (divergence_self n keep tau s) as Z; fold p in Z; fold q in Z; rewrite Z in Dq.
  pose proof (identity n tau s a Hn Ht (proj2 (proj1 Ha))) as Ia.
  pose proof (identity n tau s q Hn Ht (proj2 (proj1 Q))) as Iq; fold p in Ia, Iq.
  refine (conj _ (conj _ (conj _ (conj _ _)))).
  - assert (tau * divergence n q p <= tau * divergence n a p) by (apply Rmult_le_compat_l; lra); lra.
  - intros E; apply B1; assert (tau * divergence n q p = tau * divergence n a p) by lra.
    apply Rmult_eq_reg_l in H; lra.
  - lra.
  - lra.
  - intros E; apply B1; lra.
Qed.
