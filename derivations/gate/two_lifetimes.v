(** One constant gate and two lifetimes. *)
Require Import Reals Lra Lia List ListDec PeanoNat.
From Attnproof.derivations.gate Require Import statements.
Open Scope R_scope.

Lemma power_power x y z : Rpower (Rpower x y) z = Rpower x (y * z).
Proof. apply Rpower_mult. Qed.

Lemma power_monotone x y L : 0 < x <= y -> 0 < L -> Rpower x L <= Rpower y L.
Proof. intros H HL; apply Rle_Rpower_l; lra. Qed.

Lemma power_inverse x L : 0 < x -> 0 < L -> Rpower (Rpower x L) (/ L) = x.
Proof. intros Hx HL; rewrite power_power, Rinv_r, Rpower_1 by lra; reflexivity. Qed.

Lemma power_pos x L : 0 < Rpower x L.
Proof. apply exp_pos. Qed.

(** More pigeons than holes. *)
Lemma pigeonhole n K (f : nat -> nat) : (K < n)%nat -> (forall i, (i < n)%nat -> (f i < K)%nat) ->
  exists i j, (i < n)%nat /\ (j < n)%nat /\ i <> j /\ f i = f j.
Proof.
  intros Kn H; destruct (NoDup_dec Nat.eq_dec (map f (seq 0 n))) as [N|N].
  - exfalso; assert (L : (length (map f (seq 0 n)) <= length (seq 0 K))%nat).
    { apply NoDup_incl_length; [exact N|]; intros x Hx; apply in_map_iff in Hx; destruct Hx as (i & <- & Hi).
      apply in_seq in Hi; apply in_seq; specialize (H i ltac:(lia)); lia. }
    rewrite map_length, !seq_length in L; lia.
  - assert (E : forall l, NoDup l -> ~ NoDup (map f l) -> exists i j, In i l /\ In j l /\ i <> j /\ f i = f j).
    { induction l as [|x l IH]; intros Hl Hf; [exfalso; apply Hf; constructor|inversion Hl; subst].
      destruct (in_dec Nat.eq_dec (f x) (map f l)) as [I|I].
      - apply in_map_iff in I; destruct I as (y & E & Hy); exists x, y; repeat split; [left; reflexivity|right; exact Hy| |congruence].
        intros ->; contradiction.
      - destruct IH as (i & j & Hi & Hj & D & E); [assumption|intros N'; apply Hf; constructor; assumption|].
        exists i, j; repeat split; [right; exact Hi|right; exact Hj|exact D|exact E]. }
    destruct (E (seq 0 n) (seq_NoDup n 0) N) as (i & j & Hi & Hj & D & F); apply in_seq in Hi, Hj.
    exists i, j; repeat split; [lia|lia|exact D|exact F].
Qed.

Theorem two_lifetimes_proof : two_lifetimes.
Proof.
  refine (conj _ (conj _ _)).
  - intros a b L1 L2 Ha Hb H1 H2; assert (P1 : 0 < / L1) by (apply Rinv_0_lt_compat; lra).
    assert (P2 : 0 < / L2) by (apply Rinv_0_lt_compat; lra); split.
    + intros (g & Hg & A & B); apply Rle_trans with g.
      * rewrite <- (power_inverse g L1) by lra; apply power_monotone; lra.
      * rewrite <- (power_inverse g L2) at 1 by lra; apply power_monotone; [split; [apply power_pos|exact B]|exact P2].
    + intros H; exists (Rpower a (/ L1)); refine (conj (conj (power_pos _ _) _) (conj _ _)).
      * unfold Rpower; rewrite <- exp_0; assert (ln a <= 0).
        { rewrite <- ln_1; destruct (proj2 Ha) as [L| ->]; [left; apply ln_increasing; lra|right; reflexivity]. }
        assert (/ L1 * ln a <= 0) by nra; destruct H3 as [L| ->]; [left; apply exp_increasing, L|right; reflexivity].
      * rewrite power_power, Rinv_l, Rpower_1 by lra; lra.
      * apply Rle_trans with (Rpower (Rpower b (/ L2)) L2).
        -- apply power_monotone; [split; [apply power_pos|exact H]|exact H2].
        -- rewrite power_power, Rinv_l, Rpower_1 by lra; lra.
  - intros a b L g _ Hba (_ & A & B); lra.
  - intros n K demand channel gate Kn D C H; destruct (pigeonhole n K channel Kn C) as (i & j & Hi & Hj & N & E).
    apply (D i j (gate (channel i)) Hi Hj N); split; [apply H, Hi|rewrite E; apply H, Hj].
Qed.
