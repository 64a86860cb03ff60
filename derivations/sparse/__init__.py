"""Sparse and compressed attention."""
