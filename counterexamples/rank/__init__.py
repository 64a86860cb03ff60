"""Counterexamples: rank."""
