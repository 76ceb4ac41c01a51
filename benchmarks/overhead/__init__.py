"""What profiling costs: ours, the peers' and the floor's, in one run."""
