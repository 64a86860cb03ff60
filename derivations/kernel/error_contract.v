(** Computed states and outputs stay within the contract: columns one by one, then all together. *)
Require Import Reals Lra Lia.
From Attnproof.derivations.kernel Require Import statements sums step closed_forms formats.
Open Scope R_scope.

Lemma column_step u ud us tiny D K a k beta v s c c' alpha kappa b g :
  (0 < K)%nat -> 0 <= u -> 0 <= ud -> 0 <= us -> 0 <= tiny -> computed_step u ud us tiny D K a k beta v c c' ->
  (forall i, (i < K)%nat -> 0 <= a i <= alpha) -> 1 <= kappa -> norm2 K k <= kappa -> 1 <= b -> 0 <= beta <= b ->
  1 <= g -> beta * dot K k k <= 1 + g ->
  norm2 K (fun i => c' i - exact_step K a k beta v s i) <= g * alpha * norm2 K (fun i => c i - s i)
    + fresh (spread u ud us D) (INR K * tiny) alpha kappa b g (Rabs v) (norm2 K c).
Proof.
  intros HK U UD S P step A K1 Kk B1 B G1 G; set (x := fun i => a i * (c i - s i)).
  rewrite (norm2_ext K _ (fun i => (x i + beta * k i * - dot K k x) + (c' i - exact_step K a k beta v c i))).
  2:{ intros i _; unfold exact_step; replace (dot K k x) with (dot K k (fun j => a j * c j) - dot K k (fun j => a j * s j))
        by (unfold dot; rewrite <- rsum_minus; apply rsum_ext; intros; unfold x; ring); unfold x; ring. }
  eapply Rle_trans; [apply norm2_triangle|apply Rplus_le_compat].
  - eapply Rle_trans; [apply (norm2_erase K k beta g x); tauto|rewrite Rmult_assoc; apply Rmult_le_compat_l; [lra|]].
    apply (norm2_decay K a alpha (fun i => c i - s i)); assumption.
  - exact (step_error _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ HK U UD S P step A K1 Kk B1 B G1 G (Rle_refl _)).
Qed.

(** A bound that is linear in three lengths, over all columns. *)
Lemma linear_columns V p q r x y : 0 <= p -> 0 <= q -> 0 <= r ->
  norm2 V (fun j => p * x j + (q * y j + r)) <= p * norm2 V x + (q * norm2 V y + INR V * r).
Proof.
  intros P Q R; eapply Rle_trans; [apply norm2_triangle|]; rewrite norm2_scale, Rabs_pos_eq by exact P.
  apply Rplus_le_compat_l; eapply Rle_trans; [apply norm2_triangle|]; rewrite norm2_scale, Rabs_pos_eq by exact Q.
  apply Rplus_le_compat_l, norm2_const, R.
Qed.

Lemma norm2_below V x y : (forall j, (j < V)%nat -> 0 <= x j <= y j) -> norm2 V x <= norm2 V y.
Proof. intros H; apply norm2_mono; intros j L; rewrite Rabs_pos_eq by apply (H j L); apply (H j L). Qed.

Lemma states_within u ud us tiny D K V T a k beta v s0 c alpha kappa b g m e0 :
  (0 < K)%nat -> 0 <= u -> 0 <= ud -> 0 <= us -> 0 <= tiny ->
  let s t j := exact K a k beta (fun p => v p j) (s0 j) t in
  (forall t, (t < T)%nat -> (forall i, (i < K)%nat -> 0 <= a t i <= alpha t) /\
    1 <= kappa t /\ norm2 K (k t) <= kappa t /\ 1 <= b t /\ 0 <= beta t <= b t /\
    1 <= g t /\ beta t * dot K (k t) (k t) <= 1 + g t) ->
  (forall t j, (t < T)%nat -> (j < V)%nat ->
    computed_step u ud us tiny D K (a t) (k t) (beta t) (v t j) (c t j) (c (S t) j)) ->
  (forall t, (t <= T)%nat -> frobenius K V (s t) <= m t) ->
  frobenius K V (fun j i => c O j i - s0 j i) <= e0 ->
  forall t, (t <= T)%nat -> frobenius K V (fun j i => c t j i - s t j i) <=
    error_bound (spread u ud us D) (INR V * (INR K * tiny)) alpha kappa b g m (fun t => norm2 V (v t)) e0 t.
Proof.
  intros HK U UD S0 P s data step size start; induction t as [|t IH]; intros L; [exact start|].
  assert (Lt : (t < T)%nat) by lia; assert (Le : (t <= T)%nat) by lia; specialize (IH Le).
  destruct (data t Lt) as (A & K1 & Kk & B1 & B & G1 & G).
  assert (sp : 0 <= spread u ud us D) by (apply spread_nonneg; assumption).
  assert (A0 : 0 <= alpha t) by (specialize (A O HK); lra).
  cbn [error_bound]; set (sp' := spread u ud us D) in *; set (e := error_bound _ _ _ _ _ _ _ _ _ t) in *.
  assert (n : frobenius K V (c t) <= m t + e).
  { eapply Rle_trans; [apply norm2_below; intros j _; split; [apply norm2_nonneg|apply (norm2_near K (s t j)), Rle_refl]|].
    eapply Rle_trans; [apply norm2_triangle|specialize (size t Le); unfold frobenius in *; lra]. }
  eapply Rle_trans.
  { unfold frobenius; apply norm2_below; intros j Lj; split; [apply norm2_nonneg|].
    exact (column_step _ _ _ _ _ _ _ _ _ _ (s t j) _ _ _ _ _ _ HK U UD S0 P (step t j Lt Lj) A K1 Kk B1 B G1 G). }
  eapply Rle_trans; [apply norm2_triangle|apply Rplus_le_compat].
  - assert (0 <= g t * alpha t) by (apply Rmult_le_pos; lra).
    rewrite norm2_scale, Rabs_pos_eq by assumption; apply Rmult_le_compat_l; assumption.
  - fold sp'; unfold fresh; set (z := g t + b t * kappa t * kappa t); set (r := INR K * tiny).
    assert (bk : 0 <= b t * kappa t) by (apply Rmult_le_pos; lra).
    assert (z0 : 0 <= z) by (unfold z; pose proof (Rmult_le_pos (b t * kappa t) (kappa t) bk); lra).
    assert (r0 : 0 <= r) by (apply Rmult_le_pos; [apply pos_INR|exact P]); clearbody r.
    assert (p0 : 0 <= sp' * z * alpha t) by (repeat apply Rmult_le_pos; assumption).
    rewrite (norm2_ext V _ (fun j => sp' * z * alpha t * norm2 K (c t j) + (sp' * (b t * kappa t) * Rabs (v t j) + sp' * z * r)))
      by (intros; unfold z; ring).
    eapply Rle_trans; [apply linear_columns; [exact p0|apply Rmult_le_pos; assumption|apply Rmult_le_pos; [apply Rmult_le_pos; assumption|exact r0]]|rewrite norm2_abs].
    assert (sp' * z * alpha t * frobenius K V (c t) <= sp' * z * alpha t * (m t + e)) by (apply Rmult_le_compat_l; assumption).
    unfold frobenius in *; apply Rle_trans with (sp' * z * alpha t * (m t + e) + (sp' * (b t * kappa t) * norm2 V (v t) + INR V * (sp' * z * r)));
      [lra|apply Req_le; unfold z; ring].
Qed.

Lemma column_output u uo tiny D K q query s c o : (0 < K)%nat -> 0 <= u -> 0 <= uo -> 0 <= tiny ->
  norm2 K q <= query -> computed_output u uo tiny D K q c o ->
  Rabs (o - dot K q s) <= output_error u uo (INR K * tiny) D query (norm2 K c) (norm2 K (fun i => c i - s i)).
Proof.
  intros HK U O P Q (x & Hx & Ho); apply computed_dot_error in Hx; [|exact U|exact P].
  set (T := INR K * tiny) in *; set (Z := (1 + u) ^ D) in *; unfold output_error; fold Z.
  assert (INR1 : 1 <= INR K) by (apply (le_INR 1); lia); assert (Z1 : 1 <= Z) by (apply pow_1_le, U).
  assert (TT : tiny <= T) by (unfold T; rewrite <- (Rmult_1_l tiny) at 1; apply Rmult_le_compat_r; lra).
  pose proof (norm2_nonneg K c); set (A := query * norm2 K c + T).
  assert (size : norm2 K q * norm2 K c + T <= A) by (apply Rplus_le_compat_r, Rmult_le_compat_r; lra).
  assert (x1 : Rabs (x - dot K q c) <= (Z - 1) * A) by (eapply Rle_trans; [exact Hx|apply Rmult_le_compat_l; lra]).
  assert (x2 : Rabs x + T <= Z * A) by (pose proof (abs_near _ _ _ x1); pose proof (abs_dot_le K q c); lra).
  apply (near_error _ _ T _ _ O TT) in Ho.
  assert (Rabs (dot K q (fun i => c i - s i)) <= query * norm2 K (fun i => c i - s i))
    by (eapply Rle_trans; [apply abs_dot_le|apply Rmult_le_compat_r; [apply norm2_nonneg|exact Q]]).
  replace (o - dot K q s) with ((o - x) + ((x - dot K q c) + dot K q (fun i => c i - s i)))
    by (unfold dot; rewrite (rsum_ext K (fun i => q i * (c i - s i)) (fun i => q i * c i - q i * s i)) by (intros; ring); rewrite rsum_minus; ring).
  eapply Rle_trans; [apply Rabs_triang|]; eapply Rle_trans; [apply Rplus_le_compat_l, Rabs_triang|].
  assert (uo * (Rabs x + T) <= uo * (Z * A)) by (apply Rmult_le_compat_l; assumption); lra.
Qed.

Lemma output_within u uo tiny D K V q query s c o n e : (0 < K)%nat -> 0 <= u -> 0 <= uo -> 0 <= tiny ->
  norm2 K q <= query -> (forall j, (j < V)%nat -> computed_output u uo tiny D K q (c j) (o j)) ->
  frobenius K V c <= n -> frobenius K V (fun j i => c j i - s j i) <= e ->
  norm2 V (fun j => o j - dot K q (s j)) <= output_error u uo (INR V * (INR K * tiny)) D query n e.
Proof.
  intros HK U O P Q H N E; set (r := INR K * tiny); set (w := (1 + u) ^ D * (1 + uo) - 1).
  assert (w0 : 0 <= w).
  { unfold w; pose proof (pow_1_le u D U) as p; pose proof (Rmult_le_pos ((1 + u) ^ D) uo); lra. }
  assert (r0 : 0 <= r) by (apply Rmult_le_pos; [apply pos_INR|exact P]).
  assert (q0 : 0 <= query) by (pose proof (norm2_nonneg K q); lra).
  eapply Rle_trans.
  { rewrite <- norm2_abs; apply norm2_below; intros j L; split; [apply Rabs_pos|].
    exact (column_output _ _ _ _ _ _ _ (s j) _ _ HK U O P Q (H j L)). }
  fold r; unfold output_error; fold w; clearbody r w.
  rewrite (norm2_ext V _ (fun j => query * norm2 K (fun i => c j i - s j i) + (w * query * norm2 K (c j) + w * r))) by (intros; ring).
  eapply Rle_trans; [apply linear_columns; try apply Rmult_le_pos; assumption|].
  assert (query * frobenius K V (fun j i => c j i - s j i) <= query * e) by (apply Rmult_le_compat_l; assumption).
  assert (w * query * frobenius K V c <= w * query * n) by (apply Rmult_le_compat_l; [apply Rmult_le_pos|]; assumption).
  unfold frobenius in *; lra.
Qed.

Theorem error_contract_proof : error_contract.
Proof.
  refine (conj _ (conj linear_in_steps (conj exact_size (conj spread_linear (conj summed_depth _))))).
  - intros u ud us uo tiny D K V T a k beta v s0 c alpha kappa b g m e0 HK U UD S0 O P s room bound data step size start t L.
    pose proof (states_within _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ HK U UD S0 P data step size start t L) as E.
    split; [exact E|intros q query o Q H; apply (output_within _ _ _ _ _ _ _ _ _ (c t) _ _ _ HK U O P Q H); [|exact E]].
    eapply Rle_trans; [apply norm2_below; intros j _; split; [apply norm2_nonneg|apply (norm2_near K (s t j)), Rle_refl]|].
    eapply Rle_trans; [apply norm2_triangle|specialize (size t L); unfold frobenius, bound in *; apply Rplus_le_compat; assumption].
  - intros tie x; split; [apply (near_format (-149) 24)|apply (near_format (-133) 8)]; reflexivity.
Qed.
