"""Numbers as nvprof prints them, and views against plain loops."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest
from conftest import trace_path
from hypothesis import given
from hypothesis import strategies as st

import cuptiprof
from cuptiprof.errors import ResultError
from cuptiprof.occupancy import active_blocks, estimated_achieved_occupancy
from cuptiprof.report.intervals import length, union
from cuptiprof.report.units import time_text
from cuptiprof.schedule import Action, schedule
from cuptiprof.units import parse_bytes


@pytest.mark.parametrize(
    "ns,text",
    [(15.09e9, "15.090s"), (24.417e6, "24.417ms"), (696.98e3, "696.98us"), (928, "928ns"), (80.159e6, "80.159ms"), (1.7575e6, "1.7575ms"), (0, "0ns")],
)  # fmt: skip
def test_times_look_like_nvprofs(ns: float, text: str) -> None:
    assert time_text(ns) == text


def test_fixed_units() -> None:
    assert time_text(1500, "us") == "1.5000us"
    assert time_text(2e9, "ms") == "2000.0ms"
    with pytest.raises(ResultError):
        time_text(1, "hours")


@pytest.mark.parametrize("name", ["alexnet-a100", "train-v100"])
def test_summary_against_a_loop(name: str) -> None:
    r = cuptiprof.open(trace_path(name))
    want: dict[str, list[int]] = defaultdict(list)
    for kernel, duration in zip(r.kernels["name"], r.kernels["duration"].tolist(), strict=True):
        want[kernel].append(duration)
    rows = {row["name"]: row for row in r.summary().rows if row["block"] == "GPU activities"}
    for kernel, durations in want.items():
        row = rows[kernel]
        assert (row["calls"], row["time_ns"], row["min_ns"], row["max_ns"]) == (
            len(durations), sum(durations), min(durations), max(durations),
        )  # fmt: skip
        assert row["avg_ns"] == pytest.approx(sum(durations) / len(durations))
    assert any(n.startswith("[CUDA memcpy") for n in rows) and "[CUDA memset]" in rows
    times = [row["time_ns"] for row in r.summary().rows if row["block"] == "GPU activities"]
    assert times == sorted(times, reverse=True)


def test_regions_against_a_loop() -> None:
    r = cuptiprof.open(trace_path("train-v100"))
    rows = {row["region"]: row for row in r.regions_report().rows}
    total = sum(int(r.tables[t]["duration"].sum()) for t in ("kernels", "memcpys", "memsets"))
    assert rows["ProfilerStep#*"]["gpu_total_ns"] == total
    assert rows["ProfilerStep#*"]["calls"] == 5
    children = [rows[n]["gpu_total_ns"] for n in ("## forward ##", "## backward ##", "## optimizer ##")]
    assert sum(children) + rows["Optimizer.zero_grad#SGD.zero_grad"]["gpu_total_ns"] == total
    assert rows["## backward ##"]["kernels"] == 2810
    assert rows["ProfilerStep#*"]["gpu_busy_ns"] <= total


intervals = st.lists(st.tuples(st.integers(0, 200), st.integers(0, 50)), max_size=30)


@given(intervals)
def test_union_covers_the_same_points(pairs: list[tuple[int, int]]) -> None:
    array = np.array([(a, a + n) for a, n in pairs], np.int64).reshape(-1, 2)
    covered = {t for a, n in pairs for t in range(a, a + n)}
    joined = union(array)
    assert length(joined) == len(covered)
    assert (joined[1:, 0] > joined[:-1, 1]).all() if len(joined) > 1 else True


def test_occupancy() -> None:
    # A100, 230 registers, 128 threads, 81,920 B: two blocks an SM, 12.5 %; with the 48 KB default limit it would be 0.
    assert active_blocks((8, 0), 128, 230, 81920) == 2
    assert estimated_achieved_occupancy((8, 0), 108, 10_000, 128, 230, 81920) == 12.5
    assert active_blocks((9, 0), 1024, 32, 0) == 2
    assert active_blocks((9, 0), 1025, 32, 0) == 0
    assert active_blocks((3, 0), 128, 32, 0) == 0


def test_schedule() -> None:
    at = schedule(skip_first=1, wait=1, warmup=1, active=2, repeat=1)
    n, w, r, s = Action.NONE, Action.WARMUP, Action.RECORD, Action.RECORD_AND_SAVE
    assert [at(i) for i in range(7)] == [n, n, w, r, s, n, n]
    endless = schedule(wait=0, warmup=0, active=1)
    assert {endless(i) for i in range(9)} == {s}
    skip = schedule(wait=2, warmup=0, active=1, skip_first_wait=1)
    assert [skip(i) for i in range(4)] == [s, n, n, s]
    with pytest.raises(ValueError, match="active"):
        schedule(wait=0, warmup=0, active=0)


@pytest.mark.parametrize(
    "text,value", [("256 MB", 256_000_000), ("64MiB", 64 << 20), ("1.5 k", 1500), (4096, 4096), ("12b", 12)]
)
def test_sizes(text: str | int, value: int) -> None:
    assert parse_bytes(text) == value


@pytest.mark.parametrize("text", ["", "MB", "-1", "1 parsec", "0", "9" * 40, True])
def test_bad_sizes(text: str) -> None:
    with pytest.raises(ValueError, match=r"size|range"):
        parse_bytes(text)
