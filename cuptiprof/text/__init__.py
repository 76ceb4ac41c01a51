"""How names, sizes, times and units are written and read."""
