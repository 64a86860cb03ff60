"""Worst cases of gradients."""
