"""Each view: a result's numbers as a table."""
