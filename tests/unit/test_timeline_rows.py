"""Slices of the timeline, as the page gets them, are the rows of the result."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from conftest import trace_path

import cuptiprof
from cuptiprof.page.sections.timeline_section import timeline
from cuptiprof.page.timeline_slices import time_span


@pytest.mark.parametrize("trace", ["train-v100", "alexnet-a100"])
def test_slices_are_the_rows_of_the_result(trace: str) -> None:
    run = cuptiprof.open(trace_path(trace)).timed()
    section, span = timeline(run), time_span(run)
    assert section is not None and span is not None
    columns: Any = section.columns
    count = columns["lane_count"]
    lane = np.repeat(np.arange(len(count)), count)
    so_far = np.cumsum(columns["gap"] + columns["duration"])
    end = so_far - np.r_[0, so_far][np.r_[0, np.cumsum(count)][:-1]][lane] + span[0]
    start = end - columns["duration"]
    kind = np.array(columns["face_kind"])[columns["face"]]
    for what, table in (("kernel", run.kernels), ("memcpy", run.memcpys), ("call", run.api_calls)):
        drawn = sorted(zip(start[kind == what].tolist(), end[kind == what].tolist(), strict=True))
        assert drawn == sorted(zip(table["start"].tolist(), table["end"].tolist(), strict=True)), what
    beside = lane[1:] == lane[:-1]
    assert (start[1:][beside] >= end[:-1][beside]).all()
