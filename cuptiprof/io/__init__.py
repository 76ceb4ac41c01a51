"""Files: saved runs, spilled segments, traces of others."""
