"""Collecting hardware counters: what a session was asked to count, how it will, and the tables that come of it."""
