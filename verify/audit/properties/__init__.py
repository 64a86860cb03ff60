"""Properties that every correct kernel has, whatever its tolerance."""
