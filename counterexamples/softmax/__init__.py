"""Counterexamples: softmax attention."""
