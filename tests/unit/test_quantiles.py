"""Spread by group, against a plain loop."""

from __future__ import annotations

import statistics

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from cuptiprof.analysis.arrays.quantiles import or_none, spread_by_group


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(-(10**15), 10**15)), max_size=60))
def test_any_groups(pairs: list[tuple[int, int]]) -> None:
    group = np.array([g for g, _ in pairs], np.int64)
    found = spread_by_group(group, np.array([v for _, v in pairs], np.int64), 6)
    for g in range(6):
        values = sorted(v for other, v in pairs if other == g)
        assert found.count[g] == len(values)
        if not values:
            continue
        assert found.total[g] == sum(values) and found.minimum[g] == values[0] and found.maximum[g] == values[-1]
        assert found.median[g] == statistics.median(values)
        assert found.p95[g] == next(v for v in values if sum(w <= v for w in values) >= 0.95 * len(values))
    assert [v is None for v in or_none(found.total, found.count)] == (found.count == 0).tolist()
