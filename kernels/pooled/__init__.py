"""Pooled attention: windows of tokens compressed to one key and value each, beside the last tokens."""
