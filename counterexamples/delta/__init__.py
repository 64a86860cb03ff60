"""Counterexamples: delta."""
