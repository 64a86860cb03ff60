"""What a fixed state can and cannot do."""
