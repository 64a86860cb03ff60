"""Feature maps for `attnproof refute collision`: each takes a key, a list of K numbers, and gives m numbers.

Use arithmetic, comparisons and methods such as x.exp(); a float anywhere stands for its exact binary value.
"""


def elu(key):
    """elu(x) + 1 in every coordinate, m = K (Katharopoulos et al., Transformers are RNNs, 2020, eq. 7)."""
    return [x.exp() if x < 0 else x + 1 for x in key]


def quadratic(key):
    """1, x and all products x_i x_j with i <= j: m = 1 + K + K(K + 1)/2, exact on rational keys."""
    return [1, *key, *(x * y for i, x in enumerate(key) for y in key[i:])]


def taylor(key):
    """The first terms of e^(qk) for K = 1, with SymPy's square roots: φ_n = k^n/√n!, m = 6."""
    from sympy import factorial, sqrt

    (x,) = key
    return [x**n / sqrt(factorial(n)) for n in range(6)]
