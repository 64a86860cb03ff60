(** Sums of exponentials with distinct exponents: few zeros, by Rolle's theorem. *)
Require Import Reals Lra Lia List.
From Coquelicot Require Import Coquelicot.
From Attnproof.derivations Require Import finite_sums.
Open Scope R_scope.

Definition exp_sum (n : nat) (c k : nat -> R) (x : R) : R := rsum n (fun j => c j * exp (k j * x)).

Lemma exp_sum_derive n c k x : is_derive (exp_sum n c k) x (exp_sum n (fun j => c j * k j) k x).
Proof.
  unfold exp_sum; induction n as [|n IH]; simpl; [apply @is_derive_const|].
  apply @is_derive_plus; [exact IH|auto_derive; [exact I|ring]].
Qed.

(** Taking out e^(a x) shifts every exponent. *)
Lemma exp_sum_shift n c k a x : exp_sum n c k x = exp (a * x) * exp_sum n c (fun j => k j - a) x.
Proof.
  unfold exp_sum; rewrite <- rsum_scal; apply rsum_ext; intros j _.
  replace (exp (a * x) * (c j * exp ((k j - a) * x))) with (c j * (exp (a * x) * exp ((k j - a) * x))) by ring.
  rewrite <- exp_plus; do 2 f_equal; ring.
Qed.

Lemma rolle f f' a b : a < b -> (forall x, is_derive f x (f' x)) -> f a = 0 -> f b = 0 ->
  exists c, a < c < b /\ f' c = 0.
Proof.
  intros H D A B; destruct (MVT_cor2 f f' a b H) as (c & E & C); [intros x _; apply is_derive_Reals, D|].
  exists c; split; [exact C|]; rewrite A, B in E; apply (Rmult_eq_reg_r (b - a)); lra.
Qed.

Lemma finite_choice n (P : nat -> R -> Prop) :
  (forall i, (i < n)%nat -> exists x, P i x) -> exists p, forall i, (i < n)%nat -> P i (p i).
Proof.
  induction n as [|n IH]; intros H; [exists (fun _ => 0); intros i Hi; lia|].
  destruct IH as (p & Hp); [intros i Hi; apply H; lia|]; destruct (H n ltac:(lia)) as (x & Hx).
  exists (fun i => if Nat.eq_dec i n then x else p i); intros i Hi.
  destruct (Nat.eq_dec i n) as [->|N]; [exact Hx|apply Hp; lia].
Qed.

(** n increasing zeros of a sum of n terms with distinct exponents: all coefficients are 0. *)
Lemma exp_sum_zero n : forall c k (q : nat -> R),
  (forall i j, (i < n)%nat -> (j < n)%nat -> i <> j -> k i <> k j) ->
  (forall i j, (i < j)%nat -> (j < n)%nat -> q i < q j) ->
  (forall i, (i < n)%nat -> exp_sum n c k (q i) = 0) -> forall j, (j < n)%nat -> c j = 0.
Proof.
  induction n as [|n IH]; intros c k q K Q Z; [intros j Hj; lia|].
  set (k' := fun j => k j - k n); set (c' := fun j => c j * k' j).
  assert (Z' : forall i, (i < S n)%nat -> exp_sum (S n) c k' (q i) = 0).
  { intros i Hi; specialize (Z i Hi); rewrite (exp_sum_shift _ _ _ (k n)) in Z; fold k' in Z.
    apply Rmult_integral in Z; destruct Z as [E|E]; [pose proof (exp_pos (k n * q i)); lra|exact E]. }
  assert (last : forall x, exp_sum (S n) c' k' x = exp_sum n c' k' x).
  { intros x; unfold exp_sum at 1; cbn [rsum]; unfold c' at 2, k' at 2; fold (exp_sum n c' k' x); ring. }
  assert (mid : forall i, (i < n)%nat -> exists p, q i < p < q (S i) /\ exp_sum n c' k' p = 0).
  { intros i Hi; destruct (rolle (exp_sum (S n) c k') (exp_sum (S n) c' k') (q i) (q (S i))) as (p & B & E).
    - apply Q; lia.
    - intros x; apply exp_sum_derive.
    - apply Z'; lia.
    - apply Z'; lia.
    - exists p; rewrite <- last; split; assumption. }
  destruct (finite_choice n _ mid) as (p & P).
  assert (zero : forall j, (j < n)%nat -> c j = 0).
  { intros j Hj; assert (E : c' j = 0).
    { apply (IH c' k' p); [| |intros i Hi; apply (P i Hi)|exact Hj].
      - intros a b Ha Hb N E; apply (K a b); [lia|lia|exact N|unfold k' in E; lra].
      - intros a b Hab Hb; destruct (P a ltac:(lia)) as [[_ A] _], (P b Hb) as [[B _] _].
        destruct (Nat.eq_dec (S a) b) as [<-|N]; [lra|assert (q (S a) < q b) by (apply Q; lia); lra]. }
    unfold c' in E; apply Rmult_integral in E; destruct E as [E|E]; [exact E|exfalso].
    apply (K j n); [lia|lia|lia|unfold k' in E; lra]. }
  intros j Hj; destruct (Nat.eq_dec j n) as [->|N]; [|apply zero; lia].
  specialize (Z' O ltac:(lia)); unfold exp_sum in Z'; cbn [rsum] in Z'.
  rewrite (rsum_ext n _ (fun _ => 0)), rsum_const in Z' by (intros i Hi; rewrite zero by exact Hi; ring).
  pose proof (exp_pos (k' n * q O)) as E; replace (INR n * 0 + c n * exp (k' n * q O)) with (exp (k' n * q O) * c n) in Z' by ring.
  apply Rmult_integral in Z'; destruct Z' as [Z'|Z']; [lra|exact Z'].
Qed.
