(** tanh against its first-order expansion. *)
Require Import Reals Lra Lia.
From Coquelicot Require Import Coquelicot.
From Attnproof.derivations.expansion Require Import statements.
Open Scope R_scope.

Lemma cosh_pos x : 0 < exp x + exp (- x).
Proof. pose proof (exp_pos x); pose proof (exp_pos (- x)); lra. Qed.

Lemma tanh_ratio x : tanh x = (exp x - exp (- x)) / (exp x + exp (- x)).
Proof. unfold tanh, sinh, cosh; field; pose proof (cosh_pos x); lra. Qed.

Lemma tanh_derive x : derivable_pt_lim tanh x (1 - tanh x ^ 2).
Proof.
  apply is_derive_Reals; apply is_derive_ext with (f := fun y => (exp y - exp (- y)) / (exp y + exp (- y))).
  - intros y; symmetry; apply tanh_ratio.
  - rewrite tanh_ratio; pose proof (cosh_pos x); auto_derive; [lra|field; lra].
Qed.

Lemma tanh_0 : tanh 0 = 0.
Proof. rewrite tanh_ratio, Ropp_0, exp_0; field. Qed.

(** A function with a nonnegative derivative on [0, x] does not end below where it starts. *)
Lemma grows f f' x : 0 <= x -> (forall c, derivable_pt_lim f c (f' c)) ->
  (forall c, 0 <= c -> 0 <= f' c) -> f 0 <= f x.
Proof.
  intros [Hx|<-] D H; [|lra]; destruct (MVT_cor2 f f' 0 x Hx) as (c & E & C); [intros; apply D|].
  specialize (H c ltac:(lra)); nra.
Qed.

Lemma tanh_nonneg x : 0 <= x -> 0 <= tanh x.
Proof.
  intros Hx; rewrite tanh_ratio; apply Rmult_le_pos; [|left; apply Rinv_0_lt_compat, cosh_pos].
  destruct Hx as [Hx|<-]; [pose proof (exp_increasing (- x) x); lra|rewrite Ropp_0; lra].
Qed.

Lemma below x : 0 <= x -> tanh x <= x.
Proof.
  intros Hx; pose proof (grows (fun y => y - tanh y) (fun y => 1 - (1 - tanh y ^ 2)) x Hx) as G.
  cbv beta in G; rewrite tanh_0 in G; cut (0 - 0 <= x - tanh x); [lra|apply G].
  - intros c; apply derivable_pt_lim_minus; [apply derivable_pt_lim_id|apply tanh_derive].
  - intros c _; pose proof (pow2_ge_0 (tanh c)); lra.
Qed.

Lemma cubic x : 0 <= x -> x - tanh x <= x ^ 3 / 3.
Proof.
  intros Hx; pose proof (grows (fun y => y ^ 3 / 3 - y + tanh y) (fun y => y ^ 2 - 1 + (1 - tanh y ^ 2)) x Hx) as G.
  cbv beta in G; rewrite tanh_0 in G; cut (0 ^ 3 / 3 - 0 + 0 <= x ^ 3 / 3 - x + tanh x); [lra|apply G].
  - intros c; apply derivable_pt_lim_plus; [|apply tanh_derive].
    apply is_derive_Reals; auto_derive; [exact I|simpl; field].
  - intros c Hc; pose proof (below c Hc); pose proof (tanh_nonneg c Hc); nra.
Qed.

Theorem leaves_hull_proof : leaves_hull.
Proof.
  unfold leaves_hull, first_order, first_order_weight; refine (conj (conj _ _) (conj _ (conj _ (conj _ (conj _ _))))).
  - unfold first_weight; rewrite Ropp_0, exp_0; field.
  - apply is_derive_Reals; unfold first_weight; auto_derive; [rewrite Ropp_0, exp_0; lra|].
    rewrite ?Ropp_0, exp_0; field.
  - intros x; split; [|field]; rewrite tanh_ratio; unfold output, first_weight.
    field; pose proof (cosh_pos x); lra.
  - lra.
  - lra.
  - intros x Hx; pose proof (below x Hx); pose proof (cubic x Hx); lra.
  - intros x; replace ((1 + x) / 2 * 1 + (1 - (1 + x) / 2) * -1) with x by field.
    unfold Rabs; destruct (Rcase_abs x); split; intros H; lra.
Qed.
