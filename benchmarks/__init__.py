"""Benchmarks: programs that compare ours, the peer and the floor in one run, interleaved, and write JSON.

python -m benchmarks.regions --out benchmarks/results/regions.json
"""

try:
    import cuptiprof._core  # noqa: F401
except ImportError as e:
    # Run from the checkout, `cuptiprof` is the source folder: its native module must have been built for it.
    raise SystemExit(f"{e}\nThe benchmarks run from the checkout: pip install -e '.[all]' first") from None
