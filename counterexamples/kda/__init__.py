"""Counterexamples: kda."""
