"""Benchmarks over parameters."""
