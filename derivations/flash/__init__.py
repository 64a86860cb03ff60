"""Softmax attention in tiles."""
