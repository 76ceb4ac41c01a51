"""Intervals as a tree, against the stack that torch.profiler uses."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from cuptiprof.analysis.arrays.nesting import innermost, nest

Span = tuple[int, int, int]  # thread, start, length
spans = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 25), st.integers(0, 12)), max_size=40)


def columns(rows: list[Span]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    table = np.array(rows, np.int64).reshape(-1, 3)
    return table[:, 0], table[:, 1], table[:, 1] + table[:, 2]


def by_a_stack(order: list[int], rows: list[Span]) -> list[int]:
    """Parent of each place, one after the other."""
    parents, stack = [], []
    for place, row in enumerate(order):
        thread, start, length = rows[row]
        if place and rows[order[place - 1]][0] != thread:
            stack = []
        while stack:
            _, begin, size = rows[order[stack[-1]]]
            if start < begin + size and start + length <= begin + size:
                break
            stack.pop()
        parents.append(stack[-1] if stack else -1)
        stack.append(place)
    return parents


@settings(max_examples=300)
@given(rows=spans)
def test_parents_depths_and_sums(rows: list[Span]) -> None:
    found = nest(*columns(rows))
    parents = by_a_stack(found.order.tolist(), rows)
    assert found.parent.tolist() == parents
    depth = [0] * len(rows)
    own = np.arange(1, len(rows) + 1)
    below, inside = own.tolist(), [0] * len(rows)
    for place, parent in enumerate(parents):
        depth[place] = depth[parent] + 1 if parent >= 0 else 0
        if parent >= 0:
            inside[parent] += place + 1
    for place in reversed(range(len(rows))):
        if parents[place] >= 0:
            below[parents[place]] += below[place]
    assert found.depth.tolist() == depth
    assert found.subtree_sum(own).tolist() == below and found.children_sum(own).tolist() == inside


@settings(max_examples=200)
@given(rows=spans, times=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 40)), max_size=15))
def test_the_innermost_at_a_time(rows: list[Span], times: list[tuple[int, int]]) -> None:
    thread, start, end = columns(rows)
    at = np.array(times, np.int64).reshape(-1, 2)
    found = nest(thread, start, end)
    place = np.argsort(found.order)
    for (on, when), row in zip(times, innermost(thread, start, end, at[:, 0], at[:, 1]).tolist(), strict=True):
        holding = [i for i in range(len(rows)) if thread[i] == on and start[i] <= when < end[i]]
        assert (row in holding) if holding else row == -1
        if row >= 0:  # of those that nest, none is inside of it
            assert not any(found.parent[place[i]] == place[row] for i in holding)


def test_deep_and_wide_take_no_longer() -> None:
    """A hundred thousand in each other, and as many beside each other: steps double, so that it is a matter of a second."""
    n = 100_000
    deep = nest(np.zeros(n, np.int64), np.arange(n), 10 * n - np.arange(n))
    assert deep.depth.tolist() == list(range(n)) and deep.subtree_sum(np.ones(n, np.int64))[0] == n
    starts = np.r_[0, np.arange(1, n) * 2]
    wide = nest(np.zeros(n, np.int64), starts, np.r_[10 * n, starts[1:] + 1])
    assert (wide.parent[1:] == 0).all() and wide.after[0] == n
