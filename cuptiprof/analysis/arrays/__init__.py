"""Sums by group, intervals, nesting, searches over arrays: no loop over rows."""
