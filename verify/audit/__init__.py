"""Certify: conventions, inputs, references, derived tolerances, properties, shrinking, the worker."""
