"""Linear attention: the state adds key-value products."""
