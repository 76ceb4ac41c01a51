"""Runs of a whole job: a run of each rank in one folder."""
