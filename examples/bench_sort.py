"""A function that changes its input gets it back before each sample, outside of the time.

cuptiprof bench examples/bench_sort.py --device host
"""

from __future__ import annotations

import numpy as np

import cuptiprof
from cuptiprof.bench import Case


@cuptiprof.benchmark(
    params=[
        {"n": 1_000, "kind": "quicksort"},
        {"n": 100_000, "kind": "quicksort"},
        {"n": 100_000, "kind": "stable"},
    ],
    strategy="cpu",
)
def sort(n: int, kind: str) -> Case:
    unsorted = np.random.default_rng(0).random(n)
    values = unsorted.copy()

    def reset() -> None:
        values[:] = unsorted

    return Case(lambda: values.sort(kind=kind), setup=reset)
