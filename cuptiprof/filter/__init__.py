"""Which launches are meant."""
