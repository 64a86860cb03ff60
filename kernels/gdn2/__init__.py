"""Gated DeltaNet 2: the delta rule with an erase gate per key channel and a write gate per value channel."""
