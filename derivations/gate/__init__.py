"""Decays and gates: lifetimes and what a causal gate can know."""
