"""``region``, and handing one to another thread."""
