(** One computed step against the exact step from the same state. *)
Require Import Reals Lra Lia.
From Attnproof.derivations.kernel Require Import statements sums.
Open Scope R_scope.

(** All that is added up, in the two magnitudes X (of the decayed state) and Q (of what is written). *)
Lemma collect Z z u y ud us g X Q : z = 1 + u -> y = 1 + ud -> 1 <= Z -> 0 <= u -> 0 <= ud -> 0 <= us -> 1 <= g ->
  0 <= X -> 0 <= Q ->
  g * (ud * X) + (u * (z * (Z * y)) * Q + u * (Z * y) * Q + (Z - 1) * y * Q)
    + (u * (y * X) + u * (1 + z) * (z * (z * (Z * y)) * Q))
    + us * (z * (y * X) + z * z * (z * (z * (Z * y)) * Q))
  <= (Z * z ^ 4 * y * (1 + us) - 1) * (g * X + Q).
Proof.
  intros Ez Ey HZ U D S G PX PQ.
  assert (Z3 : 1 <= Z * z ^ 3).
  { rewrite <- (Rmult_1_l 1); apply Rmult_le_compat; try lra; apply pow_R1_Rle; lra. }
  assert (zy : 1 <= z * y) by (rewrite <- (Rmult_1_l 1); apply Rmult_le_compat; lra).
  assert (A1 : 0 <= (Z * z ^ 3 - 1) * (z * y)) by (apply Rmult_le_pos; lra).
  assert (A2 : 0 <= (g - 1) * (u * y)) by (apply Rmult_le_pos; [lra|apply Rmult_le_pos; lra]).
  assert (A3 : 0 <= g * ((Z * z ^ 3 - 1) * (z * y)) * X) by (repeat apply Rmult_le_pos; lra).
  assert (A4 : 0 <= (g - 1) * (u * y) * X) by (apply Rmult_le_pos; lra).
  assert (A5 : 0 <= (y - 1) * Q) by (apply Rmult_le_pos; lra).
  assert (A6 : 0 <= us * ((g - 1) * (z * y) + g * ((Z * z ^ 3 - 1) * (z * y))) * X).
  { apply Rmult_le_pos; [apply Rmult_le_pos; [exact S|]|exact PX].
    apply Rplus_le_le_0_compat; apply Rmult_le_pos; lra. }
  match goal with |- ?l <= ?r =>
    replace r with (l + (g * ((Z * z ^ 3 - 1) * (z * y)) * X + (g - 1) * (u * y) * X + (y - 1) * Q
      + us * ((g - 1) * (z * y) + g * ((Z * z ^ 3 - 1) * (z * y))) * X)) by (subst z y; ring) end.
  lra.
Qed.

(** A sum, fused or not. *)
Lemma added u tiny d p n : 0 <= u -> 0 <= tiny ->
  near u tiny (d + p) n \/ (exists r, near u tiny p r /\ near u tiny (d + r) n) ->
  Rabs (n - (d + p)) <= u * Rabs d + u * (1 + (1 + u)) * (Rabs p + tiny).
Proof.
  intros U P; pose proof (Rabs_pos p) as Pp; unfold near; intros [N|(r & Nr & N)].
  - pose proof (Rabs_triang d p); assert (u * (Rabs (d + p) + tiny) <= u * (Rabs d + (Rabs p + tiny))) by (apply Rmult_le_compat_l; lra).
    assert (0 <= (u * (1 + u)) * (Rabs p + tiny)) by (repeat apply Rmult_le_pos; lra); lra.
  - replace (n - (d + p)) with ((n - (d + r)) + (r - p)) by ring; eapply Rle_trans; [apply Rabs_triang|].
    pose proof (abs_near _ _ _ Nr); pose proof (Rabs_triang d r).
    assert (u * (Rabs (d + r) + tiny) <= u * (Rabs d + (Rabs p + u * (Rabs p + tiny)) + tiny)) by (apply Rmult_le_compat_l; lra); lra.
Qed.

Lemma added_norm K u tiny d p n : 0 <= u -> 0 <= tiny ->
  (forall i, (i < K)%nat -> near u tiny (d i + p i) (n i) \/ exists r, near u tiny (p i) r /\ near u tiny (d i + r) (n i)) ->
  norm2 K (fun i => n i - (d i + p i)) <= u * norm2 K d + u * (1 + (1 + u)) * (norm2 K p + INR K * tiny).
Proof.
  intros U P H; eapply Rle_trans; [apply norm2_mono; intros i Hi; apply added, H; assumption|].
  eapply Rle_trans; [apply norm2_triangle|]; rewrite norm2_scale, Rabs_pos_eq, norm2_abs by exact U.
  apply Rplus_le_compat_l; assert (0 <= u * (1 + (1 + u))) by (apply Rmult_le_pos; lra).
  apply norm2_room; [assumption|exact P|].
  intros i _; rewrite Rabs_pos_eq; [lra|apply Rmult_le_pos; [assumption|pose proof (Rabs_pos (p i)); lra]].
Qed.

Lemma step_error u ud us tiny D K a k beta v s s' alpha kappa b g n :
  (0 < K)%nat -> 0 <= u -> 0 <= ud -> 0 <= us -> 0 <= tiny -> computed_step u ud us tiny D K a k beta v s s' ->
  (forall i, (i < K)%nat -> 0 <= a i <= alpha) -> 1 <= kappa -> norm2 K k <= kappa -> 1 <= b -> 0 <= beta <= b ->
  1 <= g -> beta * dot K k k <= 1 + g -> norm2 K s <= n ->
  norm2 K (fun i => s' i - exact_step K a k beta v s i) <= fresh (spread u ud us D) (INR K * tiny) alpha kappa b g (Rabs v) n.
Proof.
  intros HK U UD S P (d & r & e & w & c & Hd & Hr & He & Hw & Hc & Hs) A K1 Kk B1 [B0 B] G1 G N.
  unfold fresh, spread; set (T := INR K * tiny); set (X := alpha * n + T).
  set (x := fun j => a j * s j); set (Z := (1 + u) ^ D).
  assert (INR1 : 1 <= INR K) by (apply (le_INR 1); lia).
  assert (TT : tiny <= T) by (unfold T; rewrite <- (Rmult_1_l tiny) at 1; apply Rmult_le_compat_r; lra).
  assert (A0 : 0 <= alpha) by (specialize (A O HK); lra).
  assert (x1 : norm2 K x + T <= X).
  { unfold X; apply Rplus_le_compat_r; eapply Rle_trans; [apply norm2_decay; eassumption|].
    apply Rmult_le_compat_l; assumption. }
  pose proof (norm2_nonneg K x) as x0; assert (X0 : 0 <= X) by lra; assert (Z1 : 1 <= Z) by (apply pow_1_le, U).
  assert (d1 : norm2 K (fun i => d i - x i) <= ud * X).
  { eapply Rle_trans; [apply (norm2_near_error K ud tiny); assumption|apply Rmult_le_compat_l; assumption]. }
  assert (d2 : norm2 K d + T <= (1 + ud) * X) by (pose proof (norm2_near _ _ _ _ d1); lra).
  set (W := Rabs v + kappa * X); pose proof (Rabs_pos v) as v0; pose proof (norm2_nonneg K d) as d0.
  assert (kX : 0 <= kappa * X) by (apply Rmult_le_pos; lra).
  assert (kT : T <= kappa * T) by (rewrite <- (Rmult_1_l T) at 1; apply Rmult_le_compat_r; lra).
  assert (kd : norm2 K k * norm2 K d + T <= (1 + ud) * (kappa * X)).
  { assert (norm2 K k * norm2 K d <= kappa * norm2 K d) by (apply Rmult_le_compat_r; assumption).
    assert (kappa * (norm2 K d + T) <= kappa * ((1 + ud) * X)) by (apply Rmult_le_compat_l; lra); lra. }
  assert (r1 : Rabs (r - dot K k d) <= (Z - 1) * ((1 + ud) * (kappa * X))).
  { eapply Rle_trans; [apply (computed_dot_error u tiny D); assumption|apply Rmult_le_compat_l; [fold Z; lra|exact kd]]. }
  set (V := (1 + ud) * W); set (Y := (1 + ud) * (kappa * X)) in *.
  assert (YV : Y + Rabs v <= V).
  { unfold V, Y, W; assert (0 <= ud * Rabs v) by (apply Rmult_le_pos; assumption); lra. }
  assert (Y0 : 0 <= Y) by (apply Rmult_le_pos; lra).
  assert (ZY : (Z - 1) * Y <= (Z - 1) * V) by (apply Rmult_le_compat_l; lra).
  assert (v1 : Rabs (v - r) + T <= Z * V).
  { pose proof (abs_dot_le K k d); pose proof (abs_near _ _ _ r1).
    assert (Rabs (v - r) <= Rabs v + Rabs r) by (unfold Rminus; eapply Rle_trans; [apply Rabs_triang|rewrite Rabs_Ropp; lra]).
    lra. }
  pose proof (near_error _ _ _ _ _ U TT He) as e1; pose proof (near_size _ _ _ _ _ U TT He) as e2.
  pose proof (near_error _ _ _ _ _ U TT Hw) as w1; pose proof (near_size _ _ _ _ _ U TT Hw) as w2.
  set (z := 1 + u) in *; set (y := 1 + ud) in *.
  assert (e3 : Rabs (e - (v - r)) <= u * (Z * V)) by (eapply Rle_trans; [exact e1|apply Rmult_le_compat_l; assumption]).
  assert (e4 : Rabs e + T <= z * (Z * V)) by (eapply Rle_trans; [exact e2|apply Rmult_le_compat_l; [unfold z; lra|exact v1]]).
  pose proof (Rabs_pos e) as e0; assert (T0 : 0 <= T) by lra.
  assert (be : Rabs (beta * e) + T <= b * (z * (Z * V))).
  { rewrite Rabs_mult, (Rabs_pos_eq beta B0).
    assert (beta * Rabs e <= b * Rabs e) by (apply Rmult_le_compat_r; assumption).
    assert (1 * T <= b * T) by (apply Rmult_le_compat_r; assumption).
    assert (b * (Rabs e + T) <= b * (z * (Z * V))) by (apply Rmult_le_compat_l; lra); lra. }
  assert (w3 : Rabs (w - beta * e) <= u * (b * (z * (Z * V)))) by (eapply Rle_trans; [exact w1|apply Rmult_le_compat_l; assumption]).
  assert (w4 : Rabs w + T <= z * (b * (z * (Z * V)))) by (eapply Rle_trans; [exact w2|apply Rmult_le_compat_l; [unfold z; lra|exact be]]).
  set (p := fun i => k i * w); pose proof (Rabs_pos w) as w0; set (Q := b * kappa * W).
  assert (Q0 : 0 <= Q) by (unfold Q, W; repeat apply Rmult_le_pos; lra).
  assert (p1 : norm2 K p + T <= z * (z * (Z * y)) * Q).
  { replace (norm2 K p) with (Rabs w * norm2 K k) by (rewrite <- norm2_scale; apply norm2_ext; intros; unfold p; ring).
    assert (Rabs w * norm2 K k <= Rabs w * kappa) by (apply Rmult_le_compat_l; assumption).
    assert (kappa * (Rabs w + T) <= kappa * (z * (b * (z * (Z * V))))) by (apply Rmult_le_compat_l; lra).
    replace (z * (z * (Z * y)) * Q) with (kappa * (z * (b * (z * (Z * V))))) by (unfold Q, V; ring); lra. }
  assert (uz : 0 <= u * (1 + z)) by (apply Rmult_le_pos; unfold z; lra).
  assert (c1 : norm2 K (fun i => c i - (d i + p i)) <= u * (y * X) + u * (1 + z) * (z * (z * (Z * y)) * Q)).
  { eapply Rle_trans; [apply (added_norm K u tiny d p c U P); exact Hc|fold z T].
    apply Rplus_le_compat; apply Rmult_le_compat_l; lra. }
  assert (c2 : norm2 K c + INR K * tiny <= z * (y * X) + z * z * (z * (z * (Z * y)) * Q)).
  { pose proof (norm2_near _ _ _ _ c1); pose proof (norm2_triangle K d p); fold T.
    set (q := z * (z * (Z * y)) * Q) in *; replace (z * (y * X) + z * z * q) with (y * X + q + (u * (y * X) + u * (1 + z) * q))
      by (unfold z; ring); lra. }
  assert (s1 : norm2 K (fun i => s' i - c i) <= us * (z * (y * X) + z * z * (z * (z * (Z * y)) * Q))).
  { eapply Rle_trans; [apply (norm2_near_error K us tiny); assumption|apply Rmult_le_compat_l; assumption]. }
  set (h := (w - beta * e) + beta * (e - (v - r)) - beta * (r - dot K k d)).
  assert (h1 : norm2 K (fun i => h * k i) <= u * (z * (Z * y)) * Q + u * (Z * y) * Q + (Z - 1) * y * Q).
  { rewrite norm2_scale.
    assert (beta * Rabs (e - (v - r)) <= b * (u * (Z * V))) by (apply Rmult_le_compat; try assumption; apply Rabs_pos).
    assert (beta * Rabs (r - dot K k d) <= b * ((Z - 1) * V)) by (apply Rmult_le_compat; try assumption; [apply Rabs_pos|lra]).
    assert (Rabs h <= u * (b * (z * (Z * V))) + b * (u * (Z * V)) + b * ((Z - 1) * V)).
    { unfold h, Rminus at 1; eapply Rle_trans; [apply Rabs_triang|rewrite Rabs_Ropp, (Rabs_mult beta), (Rabs_pos_eq beta B0)].
      pose proof (Rabs_triang (w - beta * e) (beta * (e - (v - r)))) as t; rewrite (Rabs_mult beta), (Rabs_pos_eq beta B0) in t; lra. }
    replace (u * (z * (Z * y)) * Q + u * (Z * y) * Q + (Z - 1) * y * Q)
      with ((u * (b * (z * (Z * V))) + b * (u * (Z * V)) + b * ((Z - 1) * V)) * kappa) by (unfold Q, V; ring).
    apply Rmult_le_compat; try assumption; [apply Rabs_pos|apply norm2_nonneg]. }
  rewrite (norm2_ext K _ (fun i => (s' i - c i) + ((c i - (d i + p i)) +
    (((d i - x i) + beta * k i * - dot K k (fun j => d j - x j)) + h * k i)))).
  2:{ intros i _; replace (dot K k (fun j => d j - x j)) with (dot K k d - dot K k x)
        by (unfold dot; rewrite <- rsum_minus; apply rsum_ext; intros; ring).
      unfold exact_step, h, p; fold x; change (a i * s i) with (x i); ring. }
  eapply Rle_trans; [apply norm2_triangle|]; eapply Rle_trans; [apply Rplus_le_compat; [exact s1|apply norm2_triangle]|].
  eapply Rle_trans; [apply Rplus_le_compat_l, Rplus_le_compat; [exact c1|apply norm2_triangle]|].
  pose proof (norm2_erase K k beta g (fun j => d j - x j) B0 G1 G) as er.
  assert (g * norm2 K (fun j => d j - x j) <= g * (ud * X)) by (apply Rmult_le_compat_l; lra).
  eapply Rle_trans; [|apply (Rle_trans _ _ _ (collect Z z u y ud us g X Q eq_refl eq_refl Z1 U UD S G1 X0 Q0))]; [lra|].
  rewrite pow_add; fold Z z y W Q; lra.
Qed.
