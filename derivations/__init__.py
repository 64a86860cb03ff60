"""Derivations by topic: `definition` states the mathematics once, every other file proves one claim."""
