"""Transitions whose erase and write directions differ."""
