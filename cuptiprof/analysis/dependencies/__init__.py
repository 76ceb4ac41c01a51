"""What waited for what: the critical path."""
