"""Trees: regions, what the host did, Python stacks."""
