"""The call of each correlation ID, against looking at all of them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from report_results import make_result

from cuptiprof.analysis.work import launch_calls

IDS = st.one_of(st.integers(0, 6), st.sampled_from([2**32 - 1, 2**31]))


@given(
    st.lists(st.tuples(st.integers(0, 9), IDS), max_size=12),
    st.lists(IDS, max_size=8),
    st.sampled_from([1, 3, 1 << 17]),
    st.sampled_from([0, 8]),
)
def test_of_several_the_first_to_begin(
    calls: list[tuple[int, int]], wanted: list[int], at_once: int, marks: int
) -> None:
    rows = [
        {"name": "cudaLaunchKernel", "start": start, "end": start, "correlation_id": number} for start, number in calls
    ]
    api = make_result({"api_calls": rows}).api_calls
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(launch_calls, "_AT_ONCE", at_once)
        patch.setattr(launch_calls, "_MOST_PER_ROW", marks)  # 0 and IDs far apart: by sorting
        found = launch_calls.calls_of(api, np.array(wanted, np.uint32)).tolist()
    for number, row in zip(wanted, found, strict=True):
        starts = [start for start, other in calls if other == number and number]
        assert (row == -1) == (not starts)
        assert row == -1 or (calls[row][1] == number and calls[row][0] == min(starts))
