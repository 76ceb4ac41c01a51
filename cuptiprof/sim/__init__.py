"""The simulated device. Never chosen silently: ask for it with ``device="sim"``."""
