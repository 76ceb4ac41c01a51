"""The benchmark harness: times and counters of a function that one can trust."""
