"""Affine maps of the state under composition."""
