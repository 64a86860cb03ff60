(** What is proved about kernels in floating point, to be read against the claims without reading a proof.

    A vector of width K is a function of the indices 0 .. K-1; values at other indices do not matter. A state
    is a family of V columns, [s j i] the entry i of column j: columns are computed alike and do not interact. *)
Require Import Reals List Permutation.
From Flocq Require Import Core.
From Attnproof.derivations Require Import vocabulary.
Open Scope R_scope.

(** Euclidean length of a vector, and of all entries of V columns. *)
Definition norm2 (K : nat) (x : nat -> R) : R := sqrt (dot K x x).
Definition frobenius (K V : nat) (x : nat -> nat -> R) : R := norm2 V (fun j => norm2 K (x j)).

(** y is x rounded, in the standard model: |y - x| <= u (|x| + tiny). Nothing else is known of y, so
    operations may round in different ways, and x itself counts as a rounding of x. With u the unit roundoff
    and tiny the smallest normal number, u * tiny is half the smallest subnormal; a machine that flushes
    subnormals to 0 fits with tiny = (smallest normal) / u. *)
Definition near (u tiny x y : R) : Prop := Rabs (y - x) <= u * (Rabs x + tiny).

(** r is the sum of x_i y_i over the indices listed, computed in any order: rounded products, rounded sums of
    two partial sums, and fused multiply-adds. No product meets more than d roundings, its own included. *)
Inductive summed (u tiny : R) (x y : nat -> R) : list nat -> nat -> R -> Prop :=
| Product i r : near u tiny (x i * y i) r -> summed u tiny x y (i :: nil) 1 r
| Sum l m d e a b r : summed u tiny x y l d a -> summed u tiny x y m e b -> near u tiny (a + b) r ->
    summed u tiny x y (l ++ m) (S (max d e)) r
| Fused i l d a r : summed u tiny x y l d a -> near u tiny (x i * y i + a) r -> summed u tiny x y (i :: l) (S d) r.

(** r is a computed inner product: every index 0 .. K-1 occurs once, in an order of depth at most D. Every order
    has depth at most K; sums of halves of halves have depth 1 + log2 K. *)
Definition computed_dot (u tiny : R) (D K : nat) (x y : nat -> R) (r : R) : Prop :=
  exists l d, Permutation l (seq 0 K) /\ summed u tiny x y l d r /\ (d <= D)%nat.

(** One exact step of a column: s -> a s + beta k (v - k . (a s)), entry by entry; and t of them. *)
Definition exact_step (K : nat) (a k : nat -> R) (beta v : R) (s : nat -> R) (i : nat) : R :=
  a i * s i + beta * k i * (v - dot K k (fun j => a j * s j)).
Fixpoint exact (K : nat) (a k : nat -> nat -> R) (beta v : nat -> R) (s0 : nat -> R) (t : nat) : nat -> R :=
  match t with
  | O => s0
  | S p => exact_step K (a p) (k p) (beta p) (v p) (exact K a k beta v s0 p)
  end.

(** One computed step of a column from s to s': decay d, read r, difference e, its multiple w, the sum n (fused or not),
    and storing, which may round again (us; us = 0 where the state is kept as computed). Decay has its own ud:
    0 without decay, u with exact a, more where a is itself computed, as exp of a gate is. *)
Definition computed_step (u ud us tiny : R) (D K : nat) (a k : nat -> R) (beta v : R) (s s' : nat -> R) : Prop :=
  exists (d : nat -> R) (r e w : R) (n : nat -> R),
    (forall i, (i < K)%nat -> near ud tiny (a i * s i) (d i)) /\
    computed_dot u tiny D K k d r /\ near u tiny (v - r) e /\ near u tiny (beta * e) w /\
    (forall i, (i < K)%nat -> near u tiny (d i + k i * w) (n i) \/
      exists p, near u tiny (k i * w) p /\ near u tiny (d i + p) (n i)) /\
    (forall i, (i < K)%nat -> near us tiny (n i) (s' i)).

(** The computed output: an inner product with the query, which storing may round again (uo). *)
Definition computed_output (u uo tiny : R) (D K : nat) (q s : nat -> R) (o : R) : Prop :=
  exists x, computed_dot u tiny D K q s x /\ near uo tiny x o.

(** The contract. Of each step it needs: alpha, the largest decay; kappa >= 1, at least the key's length;
    b >= 1, at least beta; g >= 1 with beta |k|^2 <= 1 + g (g = 1 whenever beta |k|^2 <= 2); m, at least the
    length of the exact state before it; v, the length of the value. room is K V tiny. *)
Definition spread (u ud us : R) (D : nat) : R := (1 + u) ^ (D + 4) * (1 + ud) * (1 + us) - 1.
Definition fresh (spread room alpha kappa b g v n : R) : R :=
  let x := alpha * n + room in spread * (g * x + b * kappa * (v + kappa * x)).
Fixpoint error_bound (spread room : R) (alpha kappa b g m v : nat -> R) (e0 : R) (t : nat) : R :=
  match t with
  | O => e0
  | S p => let e := error_bound spread room alpha kappa b g m v e0 p in
      g p * alpha p * e + fresh spread room (alpha p) (kappa p) (b p) (g p) (v p) (m p + e)
  end.
Definition output_error (u uo room : R) (D : nat) (query n e : R) : R :=
  query * e + ((1 + u) ^ D * (1 + uo) - 1) * (query * n + room).

(** The same for T steps at once, linear in T: from an exact start, with alpha = g = 1, lengths of exact states
    at most m and of values at most v. *)
Definition error_after (spread room : R) (T : nat) (kappa b m v : R) : R :=
  let rate := INR T * spread in
  rate * ((1 + b * kappa ^ 2) * (m + room) + b * kappa * v) / (1 - rate * (1 + b * kappa ^ 2)).

(** kernel.error-contract. First the contract itself: for any K, V, T, any order inside inner products, any
    rounding that follows the model, computed states and outputs stay within it. Then: T steps at once; the
    size of exact states; spread is linear in D u, and D = K always will do; and rounding to nearest, whatever it does with ties, follows
    the model, binary32 with u = 2^-24 and tiny = 2^-126, bfloat16 with u = 2^-8 and tiny = 2^-126. Flocq's FLT
    formats have no largest number: a number that overflows is no rounding of anything in the model. *)
Definition error_contract : Prop :=
  (forall u ud us uo tiny D K V T a k beta v s0 c alpha kappa b g m e0,
    (0 < K)%nat -> 0 <= u -> 0 <= ud -> 0 <= us -> 0 <= uo -> 0 <= tiny ->
    let s t j := exact K a k beta (fun p => v p j) (s0 j) t in
    let room := INR V * (INR K * tiny) in
    let bound := error_bound (spread u ud us D) room alpha kappa b g m (fun t => norm2 V (v t)) e0 in
    (forall t, (t < T)%nat -> (forall i, (i < K)%nat -> 0 <= a t i <= alpha t) /\
      1 <= kappa t /\ norm2 K (k t) <= kappa t /\ 1 <= b t /\ 0 <= beta t <= b t /\
      1 <= g t /\ beta t * dot K (k t) (k t) <= 1 + g t) ->
    (forall t j, (t < T)%nat -> (j < V)%nat ->
      computed_step u ud us tiny D K (a t) (k t) (beta t) (v t j) (c t j) (c (S t) j)) ->
    (forall t, (t <= T)%nat -> frobenius K V (s t) <= m t) ->
    frobenius K V (fun j i => c O j i - s0 j i) <= e0 ->
    forall t, (t <= T)%nat ->
      frobenius K V (fun j i => c t j i - s t j i) <= bound t /\
      forall q query o, norm2 K q <= query ->
        (forall j, (j < V)%nat -> computed_output u uo tiny D K q (c t j) (o j)) ->
        norm2 V (fun j => o j - dot K q (s t j)) <= output_error u uo room D query (m t + bound t) (bound t)) /\
  (forall spread room T kappa b m v w, 0 <= spread -> 0 <= room -> 0 <= kappa -> 0 <= b -> 0 <= m -> 0 <= v ->
    (forall t, (t < T)%nat -> w t <= v) -> INR T * spread * (1 + b * kappa ^ 2) < 1 ->
    error_bound spread room (fun _ => 1) (fun _ => kappa) (fun _ => b) (fun _ => 1) (fun _ => m) w 0 T
      <= error_after spread room T kappa b m v) /\
  (forall K V a k beta v s0 kappa t, 0 <= kappa ->
    (forall p, (p < t)%nat -> (forall i, (i < K)%nat -> 0 <= a p i <= 1) /\ 0 <= beta p /\
      beta p * dot K (k p) (k p) <= 2 /\ norm2 K (k p) <= kappa) ->
    frobenius K V (fun j => exact K a k beta (fun p => v p j) (s0 j) t)
      <= frobenius K V s0 + kappa * rsum t (fun p => beta p * norm2 V (v p))) /\
  (forall u ud us D, 0 <= u -> 0 <= ud -> 0 <= us -> let n := INR (D + 4) * u + ud + us in
    n < 1 -> 0 <= spread u ud us D <= n / (1 - n)) /\
  (forall u tiny x y l d r, summed u tiny x y l d r -> (d <= length l)%nat) /\
  (forall tie x, near (bpow radix2 (-24)) (bpow radix2 (-126)) x (round radix2 (FLT_exp (-149) 24) (Znearest tie) x) /\
    near (bpow radix2 (-8)) (bpow radix2 (-126)) x (round radix2 (FLT_exp (-133) 8) (Znearest tie) x)).

(** kernel.split. A run over tokens: what each step gives out, and the last state; a step is any function of token
    and state, rounded operations included. The same in pieces, each from the state the one before passed on. *)
Fixpoint run {X S O : Type} (step : X -> S -> O * S) (tokens : list X) (s : S) : list O * S :=
  match tokens with nil => (nil, s)
  | x :: later => let (o, s') := step x s in let (outputs, last) := run step later s' in (o :: outputs, last)
  end.
Fixpoint in_pieces {X S O : Type} (step : X -> S -> O * S) (pieces : list (list X)) (s : S) : list O * S :=
  match pieces with nil => (nil, s)
  | p :: later => let (o, s') := run step p s in let (outputs, last) := in_pieces step later s' in (o ++ outputs, last)
  end.
(** Second: the contract for states rounded when stored also bounds runs that round only where a state is passed on. *)
Definition split : Prop :=
  (forall X S O (step : X -> S -> O * S) pieces s, in_pieces step pieces s = run step (concat pieces) s) /\
  (forall u ud us tiny D K a k beta v s s', 0 <= us -> 0 <= tiny ->
    computed_step u ud 0 tiny D K a k beta v s s' -> computed_step u ud us tiny D K a k beta v s s').
(** kernel.certified-topk. Tokens are dropped where [keep] is false; z j is a computed score, e j its error; U and L
    are any bounds. Then what factors make of computed sums and of a quotient: x, y, z round L/U, 1+x, (1+16u)/y. *)
Definition certified_topk : Prop :=
  (forall n keep s z e M U L, (0 < n)%nat -> (forall j, (j < n)%nat -> Rabs (s j - z j) <= e j) ->
    let sum set f := rsum n (fun j => if Bool.eqb (keep j) set then f j else 0) in
    sum false (fun j => exp (z j + e j - M)) <= U -> L <= sum true (fun j => exp (z j - e j - M)) -> 0 < U -> 0 <= L ->
    sum false (fun j => exp (s j) / rsum n (fun i => exp (s i))) <= U / (U + L)) /\
  (forall gamma exact computed, 0 <= gamma <= 1 / 2 -> 0 <= exact ->
    ((1 - gamma) * exact <= computed -> exact <= computed * (1 + 2 * gamma)) /\
    (computed <= (1 + gamma) * exact -> computed * (1 - 2 * gamma) <= exact)) /\
  (forall u U L x y z, 0 <= u <= 13 / 17 -> 0 < U -> 0 <= L -> x <= L / U * (1 + u) -> 0 <= x ->
    y <= (1 + x) * (1 + u) -> 0 < y -> (1 + 16 * u) / y * (1 - u) <= z -> U / (U + L) <= z).
(** kernel.tensor-core-sum. n numbers cut toward zero to the grid 2^(E-f), 2^E <= M, added, cut to p bits. *)
Definition cut (g x : R) : R := g * IZR (Ztrunc (x / g)).
Definition tensor_core_sum : Prop :=
  (forall (emin p E f : Z) n x M, (0 < p)%Z -> (emin <= E - f)%Z -> bpow radix2 E <= M ->
    let result := round radix2 (FLT_exp emin p) Ztrunc (rsum n (fun i => cut (bpow radix2 (E - f)) (x i))) in
    let lost := INR n * (bpow radix2 (- f) * M) in
    Rabs (result - rsum n x) <= lost + bpow radix2 (1 - p) * (Rabs (rsum n x) + lost)) /\
  (forall T (D P d : nat -> R), (forall t, (t < T)%nat -> D (S t) = D t + P t + d t) -> D T - (D O + rsum T P) = rsum T d).
