"""docs/hardware.md out of benchmarks/results: what was verified on which chip, driver and CUPTI version."""
