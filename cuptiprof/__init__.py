"""The GPU profiler that lives inside your Python process."""
