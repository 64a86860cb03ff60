"""How far rounding may take a kernel from the reference, derived from its formats and algorithm."""
