(** Welford's identity: the vanilla recurrence is the covariance of keys and values. *)
Require Import Reals Lra Lia.
From Attnproof.derivations Require Import finite_sums.
From Attnproof.derivations.gdn Require Import statements.
Open Scope R_scope.

(** n times the covariance is the sum of products minus n times the product of the means. *)
Lemma covariance_sums k v n : (0 < n)%nat ->
  INR n * covariance k v n = rsum n (fun j => k j * v j) - rsum n k * rsum n v / INR n.
Proof.
  intros Hn; assert (P : 0 < INR n) by (apply lt_0_INR, Hn); unfold covariance.
  rewrite (rsum_ext n _ (fun j => k j * v j - mean n v * k j - mean n k * v j + mean n k * mean n v))
    by (intros; ring).
  rewrite rsum_plus, !rsum_minus, !rsum_scal, rsum_const; unfold mean; field; lra.
Qed.

Theorem drop_gives_vanilla_proof : drop_gives_vanilla.
Proof.
  intros k v n Hn; induction n as [|n IH]; [lia|].
  destruct n as [|n].
  - unfold vanilla, covariance, mean; simpl; field.
  - set (m := S n) in *; assert (P : 0 < INR m) by (apply lt_0_INR; unfold m; lia).
    assert (Q : 0 < INR (S m)) by (apply lt_0_INR; lia).
    change (vanilla k v (S m)) with
      ((1 - / INR (S m)) * vanilla k v m + / INR (S m) * ((k m - mean (S m) k) * (v m - mean m v))).
    rewrite IH by (unfold m; lia).
    pose proof (covariance_sums k v m ltac:(unfold m; lia)) as A.
    pose proof (covariance_sums k v (S m) ltac:(lia)) as B; cbn [rsum] in B.
    apply (Rmult_eq_reg_l (INR (S m))); [rewrite B|lra].
    replace (covariance k v m) with ((rsum m (fun j => k j * v j) - rsum m k * rsum m v / INR m) / INR m)
      by (rewrite <- A; field; lra).
    unfold mean; cbn [rsum]; rewrite S_INR in *; field; lra.
Qed.
