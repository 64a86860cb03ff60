"""Refuted statements by topic, each with an exact witness."""
