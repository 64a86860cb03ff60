"""Claims, verdicts, evidence, certificates and the registry. Standard library only."""
