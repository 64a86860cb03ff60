"""Counterexamples: memory."""
