"""What memory a history takes."""
