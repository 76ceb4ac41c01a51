"""Pictures by matplotlib: what all have in common, and those of a run."""
