"""Traces that are wrong on purpose: an error that says what is wrong, or what makes no sense left out, counted and named."""

from __future__ import annotations

import gzip
import json
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import cuptiprof
from cuptiprof.errors import ResultError


def event(cat: str, name: str, ts: Any = 1, dur: Any = 2, tid: int = 1, **args: Any) -> dict[str, Any]:
    return {"ph": "X", "cat": cat, "name": name, "ts": ts, "dur": dur, "pid": 0, "tid": tid, "args": args}


def opened(tmp_path: Path, events: list[Any], **beside: Any) -> cuptiprof.Result:
    (tmp_path / "t.json").write_text(json.dumps({"traceEvents": events, **beside}))
    return cuptiprof.open(tmp_path / "t.json")


@pytest.mark.parametrize(
    "wrong,reason",
    [
        (event("kernel", "k", dur=-1), "its duration is negative"),
        (event("kernel", "k", ts="NaN"), "it has no time"),
        (event("kernel", "k", ts=float("nan")), "it has no time"),
        (event("kernel", "k", ts=1e300), "it has no time|out of range"),
        (event("kernel", "k", ts=2**60), "its time is out of range"),
        (event("kernel", "k", stream=2**40), "stream is 1099511627776, which does not fit 32 bits"),
        (event("kernel", "k", grid=[1, -5, 1]), "grid is -5"),
        (event("gpu_memcpy", "m", bytes=-3), "bytes is -3"),
        (event("cuda_runtime", "c", correlation=10**30), "correlation is "),
        (event("cpu_op", "o", **{"Sequence number": -7}), "no sequence number"),
        ({"ph": "X", "cat": "cpu_op", "ts": 1, "dur": 1}, "it has no name"),
        ({**event("kernel", "k"), "args": [1]}, "args is not an object"),
    ],
)
def test_the_first_event_without_sense_is_named(wrong: Any, reason: str, tmp_path: Path) -> None:
    good = event("kernel", "k", correlation=1)
    result = opened(tmp_path, [good, {"ph": "M"}, wrong, wrong, good])
    assert len(result.kernels) == 2 and result.losses["unknown_records"] == 2
    said = result.metadata["skipped_first"]
    assert said["event"] == 2 and re.search(reason, said["reason"]), said
    assert "2 events of the trace make no sense and are left out, first event 2" in str(result.report("overview"))


def test_times_of_zero_and_no_correlation(tmp_path: Path) -> None:
    kernel = event("kernel", "k", ts=0, dur=0)
    result = opened(tmp_path, [kernel, event("cuda_runtime", "c", ts=0), event("kernel", "k", ts=5)])
    assert len(result.kernels) == 3 - 1 and result.losses["orphan_correlations"] == 2
    assert result.kernels["thread"].tolist() == [0, 0]


def test_work_whose_launch_is_missing_has_no_thread(tmp_path: Path) -> None:
    """It is not thread 0's: what is known of it is the operator that the file names, and the region of that."""
    events = [
        event("user_annotation", "step", 0, 100, 7),
        event("cpu_op", "aten::mm", 10, 20, 7, **{"External id": 5}),
        event("kernel", "gemm", 50, 10, correlation=9, **{"External id": 5}),
        event("kernel", "other", 60, 10, correlation=10),
    ]
    result = opened(tmp_path, events)
    assert result.losses["orphan_correlations"] == 2 and result.kernels["thread"].tolist() == [0, 0]
    assert result.kernels["operator"].tolist() == ["aten::mm", ""] and result.kernels["region"].tolist() == ["step", ""]
    assert "2 orphan_correlations" in str(result.report("overview"))


def test_names_of_any_length_and_any_characters(tmp_path: Path) -> None:
    names = ["x" * 65536, "\x1b[31mred\x07", "a\nb", "k\ud800", "=1+1", "\u202eevil", "", "a/b\\c"]
    result = opened(tmp_path, [event("kernel", name, 10 * i, 5, correlation=i) for i, name in enumerate(names)])
    shown = list(result.kernels["name"])
    assert shown == [name.replace("\ud800", "\\ud800") for name in names]
    arrow = result.kernels.to_arrow(["name"]).column("name").to_pylist()
    assert arrow == shown and result.kernels.to_pandas(["name"])["name"].tolist() == shown
    text = str(result.report("summary"))
    assert "\x1b" not in text and "\u202e" not in text


def test_regions_nested_deep(tmp_path: Path) -> None:
    """Paths are at most 8 KB: 20,000 levels take no longer than 20,000 regions side by side."""
    depth = 20_000
    began = time.monotonic()
    events = [event("user_annotation", f"region {i}", i, 2 * (depth - i) - 1) for i in range(depth)]
    result = opened(
        tmp_path,
        [*events, event("cuda_runtime", "c", depth - 0.5, 1, correlation=1), event("kernel", "k", correlation=1)],
    )
    assert time.monotonic() - began < 20
    assert len(result.regions) == depth and result.regions["depth"].max() == depth - 1
    assert max(map(len, result.regions["path"])) <= 8192 and result.losses["texts_lost"] > 0
    assert result.kernels["region_instance"][0] == depth and result.kernels["region"][0].startswith(
        "region 0/region 1/"
    )
    assert result.regions["parent"].tolist() == list(range(depth))


def test_operators_nested_deep(tmp_path: Path) -> None:
    depth = 20_000
    events = [event("cpu_op", f"op{i}", i, 2 * (depth - i) - 1) for i in range(depth)]
    result = opened(
        tmp_path,
        [*events, event("cuda_runtime", "c", depth - 0.5, 1, correlation=1), event("kernel", "k", correlation=1)],
    )
    assert result.kernels["operator_instance"][0] == depth and len(result.kernels["operator"][0]) <= 8192


def test_slices_that_overlap(tmp_path: Path) -> None:
    """One that ends after what it began in lies outside of it, as for torch.profiler."""
    events = [
        event("user_annotation", "a", 0, 10),
        event("user_annotation", "b", 5, 10),
        event("user_annotation", "c", 6, 1),
    ]
    assert opened(tmp_path, events).regions["path"].tolist() == ["a", "b", "b/c"]


def test_many_threads(tmp_path: Path) -> None:
    """A thread each: time grows with the events and not with their square."""
    events = [event(cat, "x", i, 5, tid=i) for i in range(20_000) for cat in ("cpu_op", "user_annotation")]
    began = time.monotonic()
    assert len(opened(tmp_path, events).regions) == 20_000
    assert time.monotonic() - began < 30


def test_what_is_not_kept_is_counted_by_category(tmp_path: Path) -> None:
    events = [
        event("python_function_x", "f"),
        event("python_function_x", "f"),
        event("odd\x1b[1m", "f"),
        event("Trace", "PyTorch Profiler"),
    ]
    result = opened(tmp_path, events)
    assert result.metadata["not_kept"] == {"odd\x1b[1m": 1, "python_function_x": 2}
    text = str(result.report("overview"))
    assert "not kept of the trace: 2 python_function_x, 1 odd" in text and "\x1b" not in text
    assert not result.losses


def test_any_number_of_categories_and_long_ones(tmp_path: Path) -> None:
    began = time.monotonic()
    events = [event(f"category {i}", "f") for i in range(50_000)] + [event("x" * 65536, "f")] * 7
    result = opened(tmp_path, events)
    assert time.monotonic() - began < 20
    kept_names = result.metadata["not_kept"]
    assert sum(kept_names.values()) == 50_007 and len(kept_names) <= 1001 and max(map(len, kept_names)) <= 80
    assert "other categories" in str(result.report("overview"))


@pytest.mark.parametrize("what", ["spaces", "events", "text"])
def test_a_bomb_takes_little_memory(what: str, tmp_path: Path) -> None:
    """A gigabyte in a megabyte: refused before it is there."""
    block = {"spaces": b" " * (1 << 20), "events": b"{}," * 350_000, "text": b"x" * (1 << 20)}[what]
    start = {"spaces": b"[", "events": b"[", "text": b'[{"name": "'}[what]
    with gzip.open(tmp_path / "bomb.json.gz", "wb", compresslevel=6) as f:
        f.write(start)
        for _ in range(1024 if what == "spaces" else 150):
            f.write(block)
    code = "try: cuptiprof.open(sys.argv[1])\nexcept cuptiprof.errors.ResultError as e: print(str(e)[-200:])"
    said, grown = in_a_child(code, tmp_path / "bomb.json.gz")
    assert "decompressed" in said or "without an end" in said
    assert grown < 400 << 20


def test_half_a_trace_is_no_trace(tmp_path: Path) -> None:
    text = json.dumps({"traceEvents": [event("kernel", "k", i, 1) for i in range(100)]})
    for cut in (1, 20, len(text) // 2, len(text) - 1):
        (tmp_path / "t.json").write_text(text[:cut])
        with pytest.raises(ResultError, match=r"t\.json: not a JSON trace .*truncated"):
            cuptiprof.open(tmp_path / "t.json")


@pytest.mark.parametrize("text", ['{"traceEvents": {}}', "{}", '{"a": [1]}', '{"traceEvents": null}'])
def test_without_events(text: str, tmp_path: Path) -> None:
    (tmp_path / "t.json").write_text(text)
    with pytest.raises(ResultError, match="no traceEvents"):
        cuptiprof.open(tmp_path / "t.json")


def test_an_empty_trace_is_an_empty_result(tmp_path: Path) -> None:
    result = opened(tmp_path, [])
    assert not any(len(table) for table in result.tables.values()) and not result.losses
    assert "imported from" in str(result.report("overview"))


FIELDS = ["ph", "cat", "name", "ts", "dur", "pid", "tid", "id", "args"]
ARGUMENTS = [
    "correlation", "stream", "device", "External id", "Sequence number", "Fwd thread id", "grid", "block", "bytes", "Input Dims",
    "Input type", "Collective name", "dtype", "In msg nelems", "Process Group Ranks", "Group size", "Bytes", "Addr", "Device Type",
    "direction", "memory bandwidth (GB/s)", "cuda_sync_kind", "Call stack", "any.sum",
]  # fmt: skip
CATEGORIES = [
    "kernel", "gpu_memcpy", "gpu_memset", "cuda_runtime", "cuda_driver", "cuda_sync", "cpu_op", "user_annotation", "overhead", "fwdbwd",
    "cuda_profiler_range", "gpu_user_annotation", "mtia_ccp_events", "mtia_runtime", "python_function", "what",
]  # fmt: skip
NAMES = [
    "k",
    "nccl:all_reduce",
    "record_param_comms",
    "autograd::engine::evaluate_function: X",
    "[memory]",
    "dma_request",
    "a/b",
    "\ud800",
]
small = st.integers(-3, 40)
values = (
    small
    | st.sampled_from([None, True, "", "7", "x", 2**31, 2**32, 2**63, -(2**63), 10**40, 0.5, 1e300, float("nan"), [], [1, 2], [[1], []], {}, ["float"]])
)  # fmt: skip
any_event = st.fixed_dictionaries(
    {},
    optional={
        "ph": st.sampled_from(["X", "X", "X", "X", "s", "f", "i", "M", 3]),
        "cat": st.sampled_from(CATEGORIES) | values,
        "name": st.sampled_from(NAMES) | values,
        "ts": small | values,
        "dur": small | values,
        "pid": small | values,
        "tid": st.integers(1, 3) | values,
        "id": small | values,
        "args": st.dictionaries(st.sampled_from(ARGUMENTS), small | values, max_size=6) | values,
    },
)


@settings(
    max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(st.lists(any_event | values, max_size=25), st.dictionaries(st.sampled_from(["deviceProperties", "distributedInfo", "baseTimeNanoseconds", "traceName"]), values | st.lists(st.dictionaries(st.sampled_from(["id", "name", "numSms", "warpSize"]), values)), max_size=3))  # fmt: skip
def test_any_events_are_a_result(tmp_path: Path, events: list[Any], beside: dict[str, Any]) -> None:
    """Whatever JSON stands in an event: rows, or a count; and each kernel, copy and set is one or the other."""
    result = opened(tmp_path, events, **beside)
    for table in result.tables.values():
        for column in table.column_names:
            assert len(table[column]) == len(table)
    dicts = [e for e in events if isinstance(e, dict)]
    of_gpu = [e for e in dicts if e.get("ph") == "X" and e.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset")]
    rows = sum(len(result.tables[name]) for name in ("kernels", "memcpys", "memsets"))
    assert rows <= len(dicts) and len(of_gpu) - result.losses["unknown_records"] <= rows
    instances = {0, *result.regions["instance"].tolist()}
    for name in ("kernels", "memcpys", "memsets", "api_calls", "operators", "collectives"):
        assert set(result.tables[name]["region_instance"].tolist()) <= instances
    assert set(result.regions["parent"].tolist()) <= instances
    for view in ("overview", "summary", "regions", "operators"):
        str(result.report(view))


def test_memory_is_a_multiple_of_the_columns(tmp_path: Path) -> None:
    """Three times the text at most, beyond what the libraries take."""
    events = ",\n".join(
        json.dumps(event("kernel", f"kernel {i % 50}", i, 1, correlation=i, grid=[i % 7, 1, 1], **{"External id": i}))
        for i in range(150_000)
    )
    (tmp_path / "t.json").write_text("[" + events + "]")
    _, grown = in_a_child("cuptiprof.open(sys.argv[1])", tmp_path / "t.json")
    assert grown < 3 * (tmp_path / "t.json").stat().st_size


def in_a_child(code: str, file: Path) -> tuple[str, int]:
    """What the code printed, and by how many bytes its peak of memory grew. Not ru_maxrss, which a process has from its parent."""
    measured = (
        "import re, sys, cuptiprof, cuptiprof.io.kineto\n"
        "def peak(): return 1024 * int(re.search(r'VmHWM:\\s*(\\d+)', open('/proc/self/status').read())[1])\n"
        f"before = peak()\n{code}\nprint(peak() - before)"
    )
    out = subprocess.run([sys.executable, "-c", measured, str(file)], capture_output=True, text=True, check=True).stdout
    said, grown = out.rstrip().rsplit("\n", 1) if "\n" in out.rstrip() else ("", out)
    return said, int(grown)
