"""Counterexamples: collision."""
