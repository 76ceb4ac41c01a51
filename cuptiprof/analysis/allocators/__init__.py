"""Memory: allocations, and what a caching allocator says."""
