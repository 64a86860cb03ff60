(** Whoever reads fewer than N^2 scores misses one, and that one may carry the output. *)
Require Import Reals Lra Lia List PeanoNat FinFun.
From Coquelicot Require Import Coquelicot.
From Attnproof.derivations Require Import finite_sums.
From Attnproof.derivations.softmax Require Import statements weights derivatives.
From Attnproof.counterexamples.softmax Require Import statements.
Open Scope R_scope.

Lemma pair_dec (x y : nat * nat) : {x = y} + {x <> y}.
Proof. repeat decide equality. Defined.

Lemma unread {A} (p : prober A) s N : (length (reads p s) < N * N)%nat ->
  exists i j, (i < N)%nat /\ (j < N)%nat /\ ~ In (i, j) (reads p s).
Proof.
  intros H; assert (HN : N <> 0%nat) by (intros ->; simpl in H; lia).
  set (pair k := (k / N, k mod N)%nat); set (all := map pair (seq 0 (N * N))).
  destruct (Forall_Exists_dec (fun x => In x (reads p s)) (fun x => in_dec pair_dec x _) all) as [F|E].
  - exfalso; assert (L : (length all <= length (reads p s))%nat).
    { apply NoDup_incl_length; [|rewrite Forall_forall in F; exact F].
      apply Injective_map_NoDup; [|apply seq_NoDup].
      intros a b E; injection E as D R; rewrite (Nat.div_mod a N HN), (Nat.div_mod b N HN), D, R; reflexivity. }
    unfold all in L; rewrite map_length, seq_length in L; lia.
  - apply Exists_exists in E; destruct E as ([i j] & I & U); exists i, j.
    apply in_map_iff in I; destruct I as (k & E & K); injection E as <- <-; apply in_seq in K.
    split; [apply Nat.div_lt_upper_bound; lia|split; [apply Nat.mod_upper_bound, HN|exact U]].
Qed.

Lemma unmoved {A} (p : prober A) s i j B : ~ In (i, j) (reads p s) ->
  answer p (raised s i j B) = answer p s.
Proof.
  induction p as [a|a b next IH]; simpl; intros H; [reflexivity|].
  assert (E : raised s i j B a b = s a b).
  { unfold raised, changed; destruct (Nat.eq_dec a i) as [->|]; [|reflexivity].
    destruct (Nat.eq_dec b j) as [->|]; [exfalso; apply H; left; reflexivity|reflexivity]. }
  rewrite E; apply IH; intros F; apply H; right; exact F.
Qed.

Lemma raised_row s i j B : raised s i j B i = changed (s i) j B.
Proof. unfold raised; destruct (Nat.eq_dec i i); congruence. Qed.

(** The raised output is the old one moved towards v_j. *)
Lemma moved N s i j B v : (j < N)%nat ->
  let Z := normaliser N 1 (s i) in
  let Z' := Z - exp (s i j / 1) + exp (B / 1) in
  0 < Z' -> output N (raised s i j B) i v - output N s i v
    = (exp (B / 1) - exp (s i j / 1)) / Z' * (v j - output N s i v).
Proof.
  intros Hj Z Z' P; assert (Hn : (0 < N)%nat) by lia; pose proof (normaliser_pos N 1 (s i) Hn) as PZ.
  fold Z in PZ; unfold output; rewrite raised_row.
  assert (old : rsum N (fun t => weight N 1 (s i) t * v t) = rsum N (fun t => exp (s i t / 1) * v t) * / Z).
  { rewrite rsum_mult_r; apply rsum_ext; intros t _; unfold weight; fold Z; unfold Rdiv; ring. }
  assert (new : rsum N (fun t => weight N 1 (changed (s i) j B) t * v t)
    = (rsum N (fun t => exp (s i t / 1) * v t) + (exp (B / 1) - exp (s i j / 1)) * v j) * / Z').
  { rewrite <- (rsum_delta N (fun t => (exp (B / 1) - exp (s i j / 1)) * v t) j Hj), <- rsum_plus, rsum_mult_r.
    apply rsum_ext; intros t _; unfold weight; rewrite normaliser_changed by exact Hj; fold Z; fold Z'.
    unfold changed, delta; destruct (Nat.eq_dec t j) as [->|]; unfold Rdiv; ring. }
  rewrite old, new; unfold Z' in *; field; lra.
Qed.

Theorem needle_proof : needle.
Proof.
  intros A p N s M HM Hr; destruct (unread p s N Hr) as (i & j & Hi & Hj & U); exists i, j.
  assert (Hn : (0 < N)%nat) by lia; pose proof (normaliser_pos N 1 (s i) Hn) as PZ.
  set (Z := normaliser N 1 (s i)) in *.
  assert (top : Z <= INR N * exp M).
  { unfold Z; rewrite <- rsum_const; apply rsum_le; intros t Ht; unfold Rdiv; rewrite Rinv_1, Rmult_1_r.
    destruct (HM i t Hi Ht) as [L|E]; [left; apply exp_increasing, L|right; f_equal; exact E]. }
  assert (part : exp (s i j / 1) <= Z).
  { apply (rsum_term_le N (fun t => exp (s i t / 1)) j); [intros t _; left; apply exp_pos|exact Hj]. }
  assert (share : forall B, M <= B -> exists share, 1 - INR N * exp (- (B - M)) <= share <= 1 /\
    forall v, output N (raised s i j B) i v - output N s i v = share * (v j - output N s i v)).
  { intros B HB; pose proof (exp_pos (B / 1)) as PB.
    exists ((exp (B / 1) - exp (s i j / 1)) / (Z - exp (s i j / 1) + exp (B / 1))); split.
    - assert (E : (exp (B / 1) - exp (s i j / 1)) / (Z - exp (s i j / 1) + exp (B / 1))
        = 1 - Z / (Z - exp (s i j / 1) + exp (B / 1))) by (field; lra).
      rewrite E; assert (Q : Z / (Z - exp (s i j / 1) + exp (B / 1)) <= INR N * exp (- (B - M))).
      { replace (INR N * exp (- (B - M))) with (INR N * exp M / exp (B / 1)).
        - apply Rmult_le_compat; [lra|left; apply Rinv_0_lt_compat; lra|lra|apply Rinv_le_contravar; lra].
        - replace (- (B - M)) with (M + - B) by ring; rewrite exp_plus, exp_Ropp.
          unfold Rdiv; rewrite Rinv_1, Rmult_1_r; ring. }
      assert (0 <= Z / (Z - exp (s i j / 1) + exp (B / 1))) by (apply Rdiv_le_0_compat; lra). lra.
    - intros v; apply moved; [exact Hj|fold Z; lra]. }
  refine (conj Hi (conj Hj (conj U (conj _ (conj share _))))).
  - intros B; apply unmoved, U.
  - intros v c guess [C0 C1]; set (d := Rabs (v j - output N s i v)) in *.
    assert (PN : 0 < INR N) by (apply lt_0_INR; exact Hn).
    assert (small : 0 < (d - c) / (2 * d * INR N)) by (apply Rdiv_lt_0_compat; nra).
    exists (Rmax M (M - ln ((d - c) / (2 * d * INR N)))).
    set (B := Rmax M _); assert (HB : M <= B) by apply Rmax_l.
    destruct (share B HB) as (q & [Q0 Q1] & E); specialize (E v).
    assert (bound : INR N * exp (- (B - M)) <= (d - c) / (2 * d)).
    { assert (- (B - M) <= ln ((d - c) / (2 * d * INR N))) by (unfold B; pose proof (Rmax_r M (M - ln ((d - c) / (2 * d * INR N)))); lra).
      assert (X : exp (- (B - M)) <= (d - c) / (2 * d * INR N)).
      { rewrite <- (exp_ln _ small); destruct H as [H|H]; [left; apply exp_increasing, H|rewrite H; lra]. }
      apply (Rmult_le_compat_l (INR N)) in X; [|lra].
      replace (INR N * ((d - c) / (2 * d * INR N))) with ((d - c) / (2 * d)) in X by (field; lra); lra. }
    assert (G : c < Rabs (output N (raised s i j B) i v - output N s i v)).
    { rewrite E, Rabs_mult; fold d; assert (P : (d - c) / (2 * d) < 1 - c / d).
      { replace ((d - c) / (2 * d)) with ((1 - c / d) / 2) by (field; lra).
        assert (c / d < 1) by (apply Rlt_div_l; lra). lra. }
      assert (c / d < q) by lra; rewrite Rabs_right by (assert (0 <= c / d) by (apply Rdiv_le_0_compat; lra); lra).
      apply Rlt_div_l in H; lra. }
    refine (conj HB (conj G _)).
    destruct (Rlt_le_dec (c / 2) (Rabs (guess - output N s i v))) as [L|L]; [left; exact L|right].
    pose proof (Rabs_triang (output N (raised s i j B) i v - guess) (guess - output N s i v)) as T.
    replace (output N (raised s i j B) i v - guess + (guess - output N s i v))
      with (output N (raised s i j B) i v - output N s i v) in T by ring.
    rewrite (Rabs_minus_sym guess (output N (raised s i j B) i v)); lra.
Qed.
