"""Gated DeltaNet (GDN): the delta rule after one decay per head."""
