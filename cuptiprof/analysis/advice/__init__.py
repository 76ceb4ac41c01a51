"""Advice: what was seen, where, how much time it can save at most, what to try."""
