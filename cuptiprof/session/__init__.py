"""``profile``: from its arguments to its result."""
