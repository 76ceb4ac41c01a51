"""Time of a run that nobody observed: read from metadata, and no idle time of a GPU."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from cuptiprof.analysis.advice.advise import advise
from cuptiprof.analysis.utilization.gpu_figures import gpu_figures
from cuptiprof.analysis.utilization.gpu_idle import gpu_idle
from cuptiprof.analysis.utilization.gpu_series import gpu_series
from cuptiprof.analysis.utilization.idle_causes import idle_causes
from cuptiprof.analysis.utilization.temporal_breakdown import temporal_breakdown
from cuptiprof.data.coverage import coverage_line, time_unobserved, unobserved
from cuptiprof.data.result import Result
from cuptiprof.data.tables import Strings, Table
from cuptiprof.flight_recorder.window import last_part

MS = 1_000_000


def run(pauses: Any) -> Result:
    """Kernels of 1 ms at 0, 2, 10 and 12 ms on one stream."""
    strings = Strings()
    start = np.array([0, 2, 10, 12], np.int64) * MS
    kernels = Table.from_columns(
        "kernels", {"start": start, "end": start + MS, "name": ["k"] * 4, "stream": [7] * 4}, strings
    )
    metadata = {"start_time_ns": 0, "stop_time_ns": 20 * MS, **({} if pauses is None else {"unobserved_ns": pauses})}
    configs = Table.from_columns("launch_configs", {"grid_x": [1], "block_x": [32]}, strings)
    return Result({"kernels": kernels, "launch_configs": configs}, metadata)


def test_idle_time_is_what_was_seen() -> None:
    plain, paused = run(None), run([[4 * MS, 9 * MS]])
    (before,), (after,) = gpu_idle(plain), gpu_idle(paused)
    assert before.unobserved == 0 and sum(before.totals().values()) == 9 * MS
    assert after.unobserved == 7 * MS and sum(after.totals().values()) == 2 * MS
    assert [gpu.idle for gpu in temporal_breakdown(plain)] == [9 * MS]
    assert [gpu.idle for gpu in temporal_breakdown(paused)] == [4 * MS]
    assert gpu_figures(plain)[0].utilisation == pytest.approx(4 / 13)
    assert gpu_figures(paused)[0].utilisation == pytest.approx(4 / 8)
    assert sum(cause.idle for cause in idle_causes(plain)) == 9 * MS
    assert sum(cause.idle for cause in idle_causes(paused)) == 2 * MS


def test_use_over_time_is_of_what_was_seen() -> None:
    paused = run([[4 * MS, 9 * MS + MS // 2]])
    (before,), (after,) = gpu_series(run(None)), gpu_series(paused)
    assert before.utilisation.tolist() == [1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1]
    known = ~np.isnan(after.utilisation)
    assert known.tolist() == [True] * 4 + [False] * 5 + [True] * 4
    assert after.utilisation[known].tolist() == [1, 0, 1, 0, 0, 1, 0, 1]
    (half,) = gpu_series(run([[MS // 2, MS]]))
    assert half.utilisation[0] == 1.0  # never more than all of it
    assert json.loads(paused.report("gpu-series").to("json"))["rows"][4]["utilisation_pct"] is None


def test_reports_say_so() -> None:
    paused = run([[4 * MS, 9 * MS], [15 * MS, 20 * MS]])
    for view in ("summary", "temporal", "idle"):
        assert coverage_line(paused.metadata) in str(paused.report(view))
    assert coverage_line(paused.metadata).startswith("Not observed: 10.000ms of 20.000ms (50.00%), 2 times;")
    rows = {row[-1]: row for row in zip(*paused.report("overview").content.data.values(), strict=True)}
    assert "not observed" in rows
    assert any("paused" in note for note in advise(paused).notes)
    assert coverage_line(run(None).metadata) == ""


def test_the_window_of_a_recorder() -> None:
    paused = run([[1 * MS, 2 * MS], [4 * MS, 9 * MS], [15 * MS, 20 * MS]])
    cut = last_part(paused, seconds=0.014)
    assert cut.metadata["unobserved_ns"] == [[6 * MS, 9 * MS], [15 * MS, 20 * MS]]
    assert time_unobserved(cut.metadata, np.array([0, 8 * MS]), np.array([20 * MS, 16 * MS])).tolist() == [
        8 * MS,
        2 * MS,
    ]


@pytest.mark.parametrize(
    "hostile",
    [
        None, 7, "x", {"a": 1}, [], [[1]], [[1, 2, 3]], [["1", "2"]], [[1.5, 2.5]], [[True, False]],
        [[1 << 80, 1 << 81]], [[5, 1]], [[3, 3]], [None, [None, None]],
    ],
)  # fmt: skip
def test_what_is_no_time(hostile: Any) -> None:
    start, end = unobserved({"unobserved_ns": hostile})
    assert len(start) == len(end) == 0
    assert coverage_line({"unobserved_ns": hostile}) == ""


def test_in_any_order_and_overlapping() -> None:
    start, end = unobserved({"unobserved_ns": [[50, 60], [0, 10], [5, 30], [6, 7], [60, 70]]})
    assert int((end - start).sum()) == 50 and (start[1:] >= end[:-1]).all()
    at = np.array([0, 20, 55]), np.array([100, 52, 56])
    assert time_unobserved({"unobserved_ns": [[50, 60], [0, 10], [5, 30], [6, 7], [60, 70]]}, *at).tolist() == [
        50,
        12,
        1,
    ]
