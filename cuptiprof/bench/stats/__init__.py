"""Statistics of samples."""
