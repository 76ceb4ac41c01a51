"""What was measured: rows, stores, tables, pictures."""
