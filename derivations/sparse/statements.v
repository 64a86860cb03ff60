(** What is proved about attention to a part of the tokens, to be read against the claims.

    A set of tokens is a function from indices to booleans, read below n. *)
Require Import Reals Bool.
From Attnproof.derivations Require Import vocabulary.
From Attnproof.derivations.softmax Require Import statements.
Open Scope R_scope.

(** The sum over the tokens in a set, its size, and the other tokens. *)
Definition part (n : nat) (keep : nat -> bool) (f : nat -> R) : R :=
  rsum n (fun j => if keep j then f j else 0).
Fixpoint size (n : nat) (keep : nat -> bool) : nat :=
  match n with O => O | S m => (size m keep + if keep m then 1 else 0)%nat end.
Definition others (keep : nat -> bool) (j : nat) : bool := negb (keep j).

(** Weights renormalised over the kept tokens; their average of one coordinate of the values. *)
Definition kept (n : nat) (keep : nat -> bool) (p : nat -> R) (j : nat) : R :=
  if keep j then p j / part n keep p else 0.
Definition average (n : nat) (p v : nat -> R) : R := rsum n (fun j => p j * v j).

(** sparse.face: on the face of the simplex where dropped tokens have no weight, the free energy is least
    at the renormalised softmax alone, and so is the divergence from softmax, with minimum - ln (mass). *)
Definition on_face (n : nat) (keep : nat -> bool) (a : nat -> R) : Prop :=
  on_simplex n a /\ forall j, (j < n)%nat -> keep j = false -> a j = 0.
Definition face : Prop :=
  forall n keep tau s, (0 < size n keep)%nat -> 0 < tau ->
    let p := weight n tau s in
    let q := kept n keep p in
    on_face n keep q /\
    forall a, on_face n keep a ->
      free_energy n tau s q <= free_energy n tau s a /\
      (free_energy n tau s a = free_energy n tau s q -> forall j, (j < n)%nat -> a j = q j) /\
      divergence n q p = - ln (part n keep p) /\ divergence n q p <= divergence n a p /\
      (divergence n a p = divergence n q p -> forall j, (j < n)%nat -> a j = q j).

(** sparse.dropped-mass: values are vectors of width K, [v j i] is coordinate i of token j. *)
Definition dropped_mass : Prop :=
  forall n keep p, on_simplex n p -> 0 < part n (others keep) p < 1 ->
    let delta := part n (others keep) p in
    let q := kept n keep p in
    let mu (w : nat -> R) := part n (others keep) (fun j => p j * w j) / delta in
    on_simplex n q /\
    (forall w, average n p w - average n q w = delta * (mu w - average n q w)) /\
    (forall K v D M,
      (forall i j, (i < n)%nat -> (j < n)%nat -> dot K (fun c => v i c - v j c) (fun c => v i c - v j c) <= D ^ 2) ->
      (forall j, (j < n)%nat -> dot K (v j) (v j) <= M ^ 2) ->
      let o (w : nat -> R) c := average n w (fun j => v j c) in
      let far := dot K (fun c => o p c - o q c) (fun c => o p c - o q c) in
      far <= (delta * D) ^ 2 /\ far <= (2 * delta * M) ^ 2) /\
    rsum n (fun j => Rabs (q j - p j)) / 2 = delta /\
    divergence n q p = - ln (1 - delta).

(** sparse.gap-bound: m dropped tokens, each at least Delta below a kept one. *)
Definition gap_bound : Prop :=
  forall n keep s top Delta, (top < n)%nat -> keep top = true -> 0 <= Delta ->
    (forall j, (j < n)%nat -> keep j = false -> s j <= s top - Delta) ->
    let m := INR (size n (others keep)) in
    part n (others keep) (weight n 1 s) <= m * exp (- Delta) / (1 + m * exp (- Delta)) /\
    (forall u, 0 < m -> let b x := m * exp (- x) / (1 + m * exp (- x)) in
      b Delta / b (Delta + u) = (exp u + m * exp (- Delta)) / (1 + m * exp (- Delta)) /\
      exp u / (1 + m * exp (- Delta)) <= b Delta / b (Delta + u)).

(** sparse.indexer-regret and sparse.index-reuse: a set kept by scores I that are within eps of s up to a
    shift c, against any set of the same size. *)
Definition top_by (n : nat) (keep : nat -> bool) (I : nat -> R) : Prop :=
  forall i j, (i < n)%nat -> (j < n)%nat -> keep i = true -> keep j = false -> I j <= I i.
Definition indexer_regret : Prop :=
  forall n keep best I s c eps, (0 < n)%nat ->
    (forall j, (j < n)%nat -> Rabs (I j - s j - c) <= eps) ->
    top_by n keep I -> size n best = size n keep ->
    (forall i j, (i < n)%nat -> (j < n)%nat -> keep i = true -> keep j = false -> s j <= s i + 2 * eps) /\
    part n (others keep) (weight n 1 s) <= exp (2 * eps) * part n (others best) (weight n 1 s).
Definition index_reuse : Prop :=
  forall n keep best L (s : nat -> nat -> R) (c eps : nat -> R), (0 < n)%nat ->
    (forall r j, (r < L)%nat -> (j < n)%nat -> Rabs (s (S r) j - s r j - c r) <= eps r) ->
    top_by n keep (s O) -> size n best = size n keep ->
    part n (others keep) (weight n 1 (s L))
      <= exp (2 * rsum L eps) * part n (others best) (weight n 1 (s L)).

(** sparse.kl-chain: [block j] below B is the block of token j. *)
Definition block_mass (n : nat) (block : nat -> nat) (a : nat -> R) (b : nat) : R :=
  part n (fun j => Nat.eqb (block j) b) a.
Definition kl_chain : Prop :=
  forall n B block a p, (forall j, (j < n)%nat -> (block j < B)%nat) ->
    (forall j, (j < n)%nat -> 0 <= a j /\ 0 < p j) ->
    let A := block_mass n block a in
    let P := block_mass n block p in
    divergence n a p = divergence B A P
      + rsum B (fun b => A b * part n (fun j => Nat.eqb (block j) b)
          (fun j => a j / A b * (ln (a j / A b) - ln (p j / P b)))).

(** sparse.bucket-threshold: tokens counted in buckets [b omega, (b+1) omega) of their scores, dropped below
    bucket b0. For omega = ln 2 the powers are those of 2, so that the test is exact in integers. *)
Definition count (n : nat) (bucket : nat -> nat) (b : nat) : R := INR (size n (fun j => Nat.eqb (bucket j) b)).
Definition bucket_threshold : Prop :=
  (forall n B b0 bucket omega s eps, (0 < n)%nat -> (b0 <= B)%nat -> 0 <= eps <= 1 ->
    (forall j, (j < n)%nat -> (bucket j < B)%nat) ->
    (forall j, (j < n)%nat -> INR (bucket j) * omega <= s j <= INR (S (bucket j)) * omega) ->
    let U := rsum b0 (fun b => count n bucket b * exp (INR (S b) * omega)) in
    let L := rsum B (fun b => if Nat.leb b0 b then count n bucket b * exp (INR b * omega) else 0) in
    (1 - eps) * U <= eps * L ->
    part n (fun j => Nat.ltb (bucket j) b0) (weight n 1 s) <= eps) /\
  (forall b, exp (INR b * ln 2) = 2 ^ b).

(** sparse.linformer, over any field, with matrices of mathcomp: F (k x n) projects n tokens to k slots. A row
    a of weights is read from F v by some function, for every v, iff it lies in the row space of F, and then by
    weights b on the slots; matrices realised through F have rank at most k; for two tokens and one slot they
    miss A by det(A)^2 at least, up to the squared Frobenius norm of A. *)
From mathcomp Require all_ssreflect all_algebra.
From Attnproof.derivations Require Import transitions.
Module Slots.
Import all_ssreflect all_algebra GRing.Theory Num.Theory transitions.
Local Open Scope ring_scope.
Definition linformer : Prop :=
  (forall (F : fieldType) k n (P : 'M[F]_(k, n)) (a : 'rV[F]_n),
    ((forall v v' : 'cV[F]_n, P *m v = P *m v' -> a *m v = a *m v') <-> (a <= P)%MS) /\
    ((a <= P)%MS <-> exists b : 'rV[F]_k, forall V (v : 'M[F]_(n, V)), a *m v = b *m (P *m v)) /\
    (forall m (B : 'M[F]_(m, k)), (\rank (B *m P) <= k)%N)) /\
  (forall (R : realFieldType) (A : 'M[R]_2) (B : 'cV[R]_2) (P : 'rV[R]_2),
    (\det A) ^+ 2 <= frobenius A * frobenius (A - B *m P)).
End Slots.
Definition linformer : Prop := Slots.linformer.
