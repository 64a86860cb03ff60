"""Worst cases over all roundings: bounds that no correct kernel exceeds."""
