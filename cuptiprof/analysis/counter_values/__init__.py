"""Hardware counters of a run as arrays, and what a launch could fill of its GPU."""
