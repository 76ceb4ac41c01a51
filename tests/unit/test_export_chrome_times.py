"""The times of the Chrome trace: exact, small enough for a float64, nesting as Perfetto reads them, and of the right year."""

from __future__ import annotations

import gzip
import json
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import PACKAGE_DATA, trace_path
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from report_results import make_result

import cuptiprof
from cuptiprof.data.result import Result
from cuptiprof.export.chrome.clock import KINETO_PERIOD, WEEK
from cuptiprof.export.chrome.json_text import microseconds

TRACES = [
    "train-v100",
    "alexnet-a100",
    "triton-a100",
    "counters-a100",
    "event-sync",
    "event-sync-streams",
    "simple-add",
    "sampled-nccl",
]
Event = dict[str, Any]


def exported(result: Result, folder: Path) -> dict[str, Any]:
    result.export(folder / "t.json", overwrite=True)
    data: dict[str, Any] = json.loads((folder / "t.json").read_text(), parse_float=str)
    return data


# How readers make ns of a time. Perfetto's trace processor multiplies the float64 and cuts (CoerceToTs of json_utils.cc for
# numbers), or takes the decimals by themselves (for text); others round.
def cut_number(text: Any) -> int:
    return int(float(text) * 1000)


def cut_decimals(text: Any) -> int:
    whole, _, decimals = str(text).partition(".")
    return int(whole) * 1000 + int(float(f"0.{decimals or 0}") * 1000)


def rounded(text: Any) -> int:
    return round(float(text) * 1000)


READERS = [cut_number, cut_decimals, rounded]


def dropped(events: list[Event], read: Callable[[Any], int]) -> list[str]:
    """Slices that Perfetto drops: that begin in another of their row and end after it (SliceTracker::MaybeCloseStack, counted
    as slice_drop_overlapping_complete_event)."""
    rows = defaultdict(list)
    for e in events:
        if e["ph"] == "X":
            rows[e["pid"], e["tid"]].append((read(e["ts"]), -read(e["dur"]), e["name"]))
    lost = []
    for slices in rows.values():
        stack: list[int] = []  # ends of the open ones
        for start, minus_duration, name in sorted(slices):
            while stack and stack[-1] <= start:
                stack.pop()
            end = start - minus_duration
            if any(start < around < end for around in stack):
                lost.append(name)
            else:
                stack.append(end)
    return lost


def test_the_original_loses_slices() -> None:
    """This is the loss: in the file itself, whose times count from 1970."""
    events = json.loads(gzip.decompress(trace_path("train-v100").read_bytes()), parse_float=str)["traceEvents"]
    assert len(dropped(events, cut_number)) > 700


@pytest.mark.parametrize("name", TRACES)
def test_perfetto_keeps_every_slice(name: str, tmp_path: Path) -> None:
    events = exported(cuptiprof.open(trace_path(name)), tmp_path)["traceEvents"]
    for read in READERS:
        assert not dropped(events, read), read.__name__


nested = st.lists(st.tuples(st.integers(0, 5000), st.integers(1, 5000)), min_size=1, max_size=6)


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(steps=nested, unix=st.integers(1, 2**62), run=st.integers(0, 10**15))
def test_regions_that_end_together_still_nest(steps: Any, unix: int, run: int, tmp_path: Path) -> None:
    """Regions around one last kernel: all end when it ends, and a nanosecond too many loses the inner ones."""
    kernels, regions, at = [], [], run
    for i, (gap, duration) in enumerate(steps, 1):
        at += gap
        kernels.append({"name": "k", "start": at, "end": at + duration, "stream": 7, "region_instance": i})
        at += duration
        regions.append(
            {"name": f"r{i}", "path": f"r{i}", "start": run + i, "end": at + 99, "instance": i, "parent": i - 1}
        )
    for region in regions:
        region["end"] = at + 99
    data = exported(make_result({"kernels": kernels, "regions": regions}, {"clock_pairs": [[run, unix]]}), tmp_path)
    for read in READERS:
        assert not dropped(data["traceEvents"], read), read.__name__
    starts = [
        data["baseTimeNanoseconds"] + cut_number(e["ts"]) for e in data["traceEvents"] if e.get("cat") == "kernel"
    ]
    assert starts == [k["start"] - run + unix for k in kernels]


@settings(max_examples=500)
@given(st.lists(st.integers(-(2**62), 2**62) | st.integers(0, 7 * 10**14) | st.integers(0, 10**6), min_size=1))
def test_text_is_exact(values: list[int]) -> None:
    for ns, text in zip(values, microseconds(np.array(values)), strict=True):
        whole, _, decimals = text.removeprefix("-").partition(".")
        assert int(whole + decimals[:3]) == abs(ns) and decimals[3:] in ("", "1") and text.startswith("-") == (ns < 0)
        if 0 <= ns < 7 * 10**14:
            assert cut_number(text) == cut_decimals(text) == rounded(text) == ns


@pytest.mark.parametrize("name", TRACES)
def test_times_of_an_imported_trace(name: str, tmp_path: Path) -> None:
    """They count from the beginning of a week, or from where the file's did if it had a base."""
    original = json.loads(gzip.decompress(trace_path(name).read_bytes()), parse_float=str)
    data = exported(cuptiprof.open(trace_path(name)), tmp_path)
    base, given = data["baseTimeNanoseconds"], original.get("baseTimeNanoseconds", 0)
    assert base == given if given else base % WEEK == 0
    for category in ("kernel", "cuda_runtime", "gpu_memcpy"):
        mine, theirs = (
            sorted(before + cut_decimals(e["ts"]) for e in events if e.get("cat") == category and e["ph"] == "X")
            for events, before in ((data["traceEvents"], base), (original["traceEvents"], given))
        )
        assert mine == theirs
    assert all(0 <= cut_decimals(e["ts"]) < KINETO_PERIOD for e in data["traceEvents"] if "ts" in e)


def test_ranks_agree_on_the_base(tmp_path: Path) -> None:
    """Their run clocks differ; the times of what happened at once are the same (HTA compares them without the base)."""
    ts = []
    for rank, run in enumerate((5 * 10**12, 9 * 10**15)):
        kernels = [{"name": "k", "start": run + 1500, "end": run + 2500}]
        pairs = {"clock_pairs": [[run, 1_795_311_598_751_660_377], [run + 10**9, 0]], "rank": rank}
        (kernel,) = [
            e
            for e in exported(make_result({"kernels": kernels}, pairs), tmp_path)["traceEvents"]
            if e.get("cat") == "kernel"
        ]
        ts.append(kernel["ts"])
    assert ts[0] == ts[1] and float(ts[0]) < WEEK / 1000


def test_the_year_of_a_replayed_run(tmp_path: Path) -> None:
    """The recorded times drive the simulated clock on by decades while it runs; the trace says when it ran."""
    with cuptiprof.profile(device=f"replay:{PACKAGE_DATA / 'train-v100.json.gz'}") as prof:
        pass
    data = exported(prof.result(), tmp_path)
    first = min(float(e["ts"]) for e in data["traceEvents"] if e["ph"] == "X")
    assert abs(data["baseTimeNanoseconds"] / 1e9 + first / 1e6 - time.time()) < 600


def test_steps_are_not_projected(tmp_path: Path) -> None:
    """HTA counts iterations by the name, whatever bears it: 6 for 5 when one launches work directly. Regions around are drawn."""
    regions = [
        {"name": "epoch", "path": "epoch", "start": 0, "end": 100, "instance": 1},
        {"name": "ProfilerStep#3", "path": "epoch/ProfilerStep#3", "start": 1, "end": 90, "instance": 2, "parent": 1},
        {"name": "fwd", "path": "epoch/ProfilerStep#3/fwd", "start": 2, "end": 50, "instance": 3, "parent": 2},
    ]
    kernels = [
        {"name": "a", "start": 10, "end": 20, "region_instance": 3},
        {"name": "b", "start": 30, "end": 40, "region_instance": 2},
    ]
    data = exported(make_result({"kernels": kernels, "regions": regions}), tmp_path)
    spans = {e["name"]: e["dur"] for e in data["traceEvents"] if e.get("cat") == "gpu_user_annotation"}
    assert spans == {"fwd": "0.012", "epoch": "0.032"}
    assert [e["name"] for e in data["traceEvents"] if e["name"].startswith("ProfilerStep")] == ["ProfilerStep#3"]
    for name in TRACES:
        events = exported(cuptiprof.open(trace_path(name)), tmp_path)["traceEvents"]
        assert not [e for e in events if e.get("cat") == "gpu_user_annotation" and e["name"].startswith("ProfilerStep")]


@pytest.mark.parametrize("name", TRACES)
def test_what_the_file_says_is_kept(name: str, tmp_path: Path) -> None:
    """Bandwidths, which its rounded times do not give, and the process group."""
    original = json.loads(gzip.decompress(trace_path(name).read_bytes()))
    result = cuptiprof.open(trace_path(name))
    result.save(tmp_path / "run")
    for r in (result, cuptiprof.open(tmp_path / "run")):
        data = exported(r, tmp_path)
        key = "memory bandwidth (GB/s)"
        for category in ("gpu_memcpy", "gpu_memset"):
            mine, theirs = (
                sorted(float(e["args"][key]) for e in events if e.get("cat") == category and e["ph"] == "X")
                for events in (data["traceEvents"], original["traceEvents"])
            )
            assert mine == theirs
        assert data["distributedInfo"] == {"rank": 0, **(original.get("distributedInfo") or {})}


def test_work_without_times_is_left_out(tmp_path: Path) -> None:
    """One kernel at 0 would put the beginning of the trace into 1970, and all others out of a float64's reach."""
    at = 1_795_311_598_751_660_377
    kernels = [{"name": "k", "start": at, "end": at + 5}, {"name": "lost", "start": 0, "end": 0}]
    data = exported(make_result({"kernels": kernels}), tmp_path)
    assert [(e["name"], cut_number(e["ts"])) for e in data["traceEvents"] if e.get("cat") == "kernel"] == [
        ("k", at % WEEK)
    ]


def test_queued_is_unix_time_in_ns(tmp_path: Path) -> None:
    """As Kineto writes it; opened again it is the same moment."""
    kernels = [
        {"name": "k", "start": 5000, "end": 6000, "queued": 4321, "correlation_id": 1},
        {"name": "k", "start": 7000, "end": 8000},
    ]
    data = exported(make_result({"kernels": kernels}, {"clock_pairs": [[0, 10**18]]}), tmp_path)
    assert [e["args"]["queued"] for e in data["traceEvents"] if e.get("cat") == "kernel"] == [10**18 + 4321, 0]
    again = cuptiprof.open(tmp_path / "t.json").kernels
    assert (again["start"] - again["queued"]).tolist()[0] == 679 and again["queued"][1] == 0


def test_hostile_process_groups_and_bandwidths(tmp_path: Path) -> None:
    for info in ([1], "x", {"rank": "NaN"}, {"rank": 1e300, "x": "\ud800"}, {"a": {"b": [None]}}, None):
        events = [
            {
                "ph": "X",
                "cat": "gpu_memcpy",
                "name": "Memcpy HtoD",
                "ts": 1,
                "dur": 2,
                "args": {"bytes": 8, "memory bandwidth (GB/s)": b},
            }
            for b in (-1, "x", "1e999", "nan", [1], None, True, 10**400)
        ]
        (tmp_path / "in.json").write_text(json.dumps({"traceEvents": events, "distributedInfo": info}))
        result = cuptiprof.open(tmp_path / "in.json")
        assert len(result.memcpys) == len(events) and np.isfinite(result.memcpys["bandwidth"]).all()
        again = exported(result, tmp_path)
        assert {
            float(e["args"]["memory bandwidth (GB/s)"]) for e in again["traceEvents"] if e.get("cat") == "gpu_memcpy"
        } <= {0.004, 1.0}
