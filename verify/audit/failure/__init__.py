"""A failing input made small, and written so that others can see it fail."""
