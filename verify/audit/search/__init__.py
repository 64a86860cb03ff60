"""The search for inputs that are worse than the classes."""
