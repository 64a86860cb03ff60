(** What is proved on the way from softmax to Gated DeltaNet, to be read against the claims.

    Tokens are numbered from 0: after n tokens the last one read is n-1. The statements about outputs
    are about one coordinate of the values, the score of token j for one fixed query being [s j]. *)
Require Import Reals.
From Attnproof.derivations Require Import vocabulary.
Open Scope R_scope.

(** Softmax output after n tokens, and the weight of the newest token when it is read. *)
Definition output (s v : nat -> R) (n : nat) : R :=
  rsum n (fun j => exp (s j) * v j) / rsum n (fun j => exp (s j)).
Definition self_weight (s : nat -> R) (j : nat) : R := exp (s j) / rsum (S j) (fun i => exp (s i)).

(** gdn.exact-delta: the output moves towards each new value by the self weight, exactly. *)
Definition exact_delta : Prop :=
  forall s v, output s v 1 = v O /\
    forall n, (0 < n)%nat -> output s v (S n) = output s v n + self_weight s n * (v n - output s v n).

(** gdn.survival-product: after j + 1 + d tokens token j keeps its self weight times what the d later
    tokens left of it. *)
Definition survival_product : Prop :=
  forall s j d, exp (s j) / rsum (S j + d) (fun i => exp (s i))
    = self_weight s j * rprod d (fun i => 1 - self_weight s (S j + i)).

(** gdn.drop-gives-vanilla: the recurrence is the covariance of keys and values, entry by entry.
    [vanilla k v n] is the state after n tokens. *)
Definition covariance (k v : nat -> R) (n : nat) : R :=
  rsum n (fun j => (k j - mean n k) * (v j - mean n v)) / INR n.
Fixpoint vanilla (k v : nat -> R) (n : nat) : R :=
  match n with
  | O => 0
  | S O => 0
  | S m => (1 - / INR n) * vanilla k v m + / INR n * ((k m - mean n k) * (v m - mean m v))
  end.
Definition drop_gives_vanilla : Prop :=
  forall k v n, (0 < n)%nat -> vanilla k v n = covariance k v n.

(** gdn.minimax-query: in the ball of radius r the first-order self weight (1 + q.kappa)/t is largest at
    r kappa/|kappa|, and only there; with r = |kappa| that is kappa. *)
Definition first_order (K : nat) (t : R) (q kappa : nat -> R) : R := (1 + dot K q kappa) / t.
Definition minimax_query : Prop :=
  forall K t r (kappa : nat -> R), 0 < t -> 0 < r -> 0 < dot K kappa kappa ->
    let best i := r * kappa i / sqrt (dot K kappa kappa) in
    dot K best best = r ^ 2 /\
    (forall q, dot K q q <= r ^ 2 -> first_order K t q kappa <= first_order K t best kappa) /\
    (forall q, dot K q q <= r ^ 2 -> first_order K t q kappa = first_order K t best kappa ->
      forall i, (i < K)%nat -> q i = best i) /\
    (r = sqrt (dot K kappa kappa) -> forall i, best i = kappa i).

(** gdn.least-squares-query, its stability: with the substitute c = 2 s^2 kappa/(1 + x), x = s^2 |kappa|^2,
    the transition x -> (1 - 1/t) x - (1/t) kappa (c.x) has kappa as eigenvector, with an eigenvalue that
    lies in (1 - 3/t, 1 - 1/t], so in [-1, 1] for every t >= 2, whatever the data. *)
Definition least_squares_query : Prop :=
  forall K t s (kappa : nat -> R), 2 <= t -> 0 < s ->
    let x := s ^ 2 * dot K kappa kappa in
    let c i := 2 * s ^ 2 * kappa i / (1 + x) in
    let eigenvalue := 1 - / t - 2 / t * (x / (1 + x)) in
    (forall i, (1 - / t) * kappa i - / t * (kappa i * dot K c kappa) = eigenvalue * kappa i) /\
    1 - 3 / t < eigenvalue <= 1 - / t /\ -1 <= eigenvalue <= 1.
