"""Few different integers in many rows: the same as np.unique, and in memory of the rows."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from cuptiprof.data.codes import distinct, distinct_rows, first_rows, renumbered

near = st.integers(-3, 60)
far = st.sampled_from([-(2**62), -1, 0, 5, 2**40, 2**62])
values = st.lists(near | far, max_size=60)


@given(values)
def test_distinct_and_renumbered_are_unique(found: list[int]) -> None:
    column = np.array(found, np.int64)
    used, which = renumbered(column)
    assert used.tolist() == distinct(column).tolist() == sorted(set(found))
    assert used[which].tolist() == found


@given(st.lists(st.integers(0, 255), max_size=60))
def test_small_types(found: list[int]) -> None:
    for dtype in (np.uint8, np.uint32, np.uint64):
        used, which = renumbered(np.array(found, dtype))
        assert used[which].tolist() == found and used.tolist() == sorted(set(found))


@given(st.lists(st.tuples(near | far, near, far), max_size=60))
def test_distinct_rows_are_unique_rows(found: list[tuple[int, int, int]]) -> None:
    columns = np.array(found, np.int64).reshape(-1, 3).T
    rows, which = distinct_rows(*columns)
    assert [tuple(row) for row in rows.tolist()] == sorted(set(found))
    assert [tuple(row) for row in rows[which].tolist()] == found
    first = first_rows(which, len(rows)).tolist()
    assert first == [found.index(tuple(row)) for row in rows.tolist()]


def test_all_different_and_far_apart() -> None:
    column = np.arange(10**5) * 2**40
    assert (distinct(column) == column).all()
    rows, which = distinct_rows(column, column % 7, column)
    assert len(rows) == 10**5 and (rows[which][:, 0] == column).all()
