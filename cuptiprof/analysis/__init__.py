"""Numbers out of a result."""
