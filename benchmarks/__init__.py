"""Benchmarks: programs that compare ours, the peer and the floor in one run, in turn, and write JSON.

python -m benchmarks.regions --out benchmarks/results/regions.json
"""

import sys
from pathlib import Path

# `python -m benchmarks.X` puts the checkout first, where `cuptiprof` is sources without the native module: the installed one is meant.
_ROOT = str(Path(__file__).resolve().parents[1])
sys.path[:] = [*(p for p in sys.path if str(Path(p or ".").resolve()) != _ROOT), _ROOT]
