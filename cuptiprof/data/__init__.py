"""What a session brought: tables, losses, the result."""
