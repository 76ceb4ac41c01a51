"""The recorder that is always on: the last seconds in memory, and a saved run of them when something happens."""
