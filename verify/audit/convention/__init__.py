"""How a function is called and what it promises, as data."""
