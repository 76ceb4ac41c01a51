"""Views against plain loops over the events of the trace file itself."""

from __future__ import annotations

import gzip
import json
from collections import defaultdict
from typing import Any

import pytest
from conftest import trace_path
from hypothesis import given, settings
from hypothesis import strategies as st
from report_results import make_result, training_step

import cuptiprof


def events(name: str) -> list[dict[str, Any]]:
    with gzip.open(trace_path(name), "rt") as file:
        return [e for e in json.load(file)["traceEvents"] if e.get("ph") == "X"]


def ns(value: Any) -> int:
    return round(value * 1000) if isinstance(value, float) else value * 1000


def test_summary_against_the_file() -> None:
    want: dict[tuple[str, str], list[int]] = defaultdict(list)
    for e in events("alexnet-a100"):
        category, name = e.get("cat"), e["name"]
        if category == "gpu_memcpy":
            name = f"[CUDA memcpy {name.split()[1]}]"
        elif category == "gpu_memset":
            name = "[CUDA memset]"
        elif category not in ("kernel", "cuda_runtime", "cuda_driver"):
            continue
        block = "API calls" if category.startswith("cuda_") else "GPU activities"
        want[block, name].append(ns(e["dur"]))
    rows = cuptiprof.open(trace_path("alexnet-a100")).summary().rows
    assert {(r["block"], r["name"]) for r in rows} == set(want)
    whole = {block: sum(sum(v) for (b, _), v in want.items() if b == block) for block, _ in want}
    for row in rows:
        values = want[row["block"], row["name"]]
        assert (row["calls"], row["time_ns"], row["min_ns"], row["max_ns"]) == (
            len(values), sum(values), min(values), max(values),
        )  # fmt: skip
        assert row["avg_ns"] == pytest.approx(sum(values) / len(values))
        assert row["percent"] == pytest.approx(100 * sum(values) / whole[row["block"]])


def test_gpu_trace_against_the_file() -> None:
    want = sorted(
        (e for e in events("alexnet-a100") if e["cat"] in ("kernel", "gpu_memcpy", "gpu_memset")),
        key=lambda e: e["ts"],
    )
    rows = cuptiprof.open(trace_path("alexnet-a100")).gpu_trace().rows
    assert len(rows) == len(want)
    first = rows[0]["start_ns"]
    by_correlation = {row["correlation"]: row for row in rows}
    for e in want:
        row = by_correlation[e["args"]["correlation"]]
        assert row["duration_ns"] == ns(e["dur"]) and row["stream"] == e["tid"]
        assert row["start_ns"] - first == (e["ts"] - want[0]["ts"]) * 1000
        if e["cat"] == "kernel":
            assert list(row["grid"]) == e["args"]["grid"] and list(row["block"]) == e["args"]["block"]
            assert row["registers"] == e["args"]["registers per thread"] and row["name"] == e["name"]
            assert row["bytes"] is None
        else:
            assert row["bytes"] == e["args"]["bytes"] and row["grid"] is None
            # Of the file, whose times are whole microseconds: from them it would be up to twice as much.
            assert row["throughput"] == pytest.approx(float(e["args"]["memory bandwidth (GB/s)"]) * 1e9)


def test_limits_show_the_first_rows_of_the_same_order() -> None:
    r = cuptiprof.open(trace_path("train-v100"))
    for view in ("gpu-trace", "api-trace", "regions"):
        assert r.report(view, limit=7).rows == r.report(view).rows[:7]
        assert "more" in str(r.report(view, limit=7)) and "more" not in str(r.report(view, limit=10**6))
    assert r.report("summary", limit=0).rows == []


def test_per_gpu() -> None:
    kernels = [{"name": "a", "start": 0, "end": 10 * (d + 1), "device": d} for d in (0, 1, 1)]
    report = make_result({"kernels": kernels}).summary(per_gpu=True)
    assert [(r["block"], r["device"], r["calls"], r["time_ns"], r["percent"]) for r in report.rows] == [
        ("GPU activities", 0, 1, 10, 100.0),
        ("GPU activities", 1, 2, 40, 100.0),
    ]
    assert "GPU activities (GPU 1):" in str(report)


def test_whole_graphs_count_once() -> None:
    graphs = [{"start": 0, "end": 50, "correlation_id": 1}, {"start": 60, "end": 90, "correlation_id": 2}]
    kernels = [{"name": "node", "start": 60, "end": 90, "correlation_id": 2}]
    rows = {r["name"]: r for r in make_result({"kernels": kernels, "graph_launches": graphs}).summary().rows}
    assert rows["[CUDA graph]"]["time_ns"] == 50 and rows["node"]["time_ns"] == 30


def test_region_rates_and_idle() -> None:
    rows = {r["region"]: r for r in training_step().regions_report().rows}
    fwd, step = rows["fwd"], rows["step"]
    assert fwd["gpu_self_ns"] == fwd["gpu_total_ns"] == 10_000 + 12_345 + 10
    assert step["gpu_self_ns"] == 1_000 + 1_000 and step["gpu_total_ns"] == 2_000 + 22_355
    assert step["gpu_busy_ns"] == 1_000 + 10 + 10_000 + 12_345  # sgd runs beside gemm
    assert fwd["flops_rate"] == pytest.approx(5e6 * 1e9 / 22_355)
    assert step["flops_rate"] is None
    assert fwd["gpu_idle_ns"] == 1_500 - (900 + 10 + 500)
    assert rows["(no region)"]["kernels"] == 1 and rows["(no region)"]["host_ns"] is None
    assert sum(r["percent"] for r in rows.values() if r["depth"] == 0) == pytest.approx(100)


def test_a_rate_needs_all_instances() -> None:
    regions = [
        {"start": 0, "end": 9, "name": "a", "path": "a", "instance": 1, "flops": 7.0},
        {"start": 10, "end": 19, "name": "a", "path": "a", "instance": 2},
    ]
    kernels = [{"name": "k", "start": 0, "end": 5, "region": "a", "region_instance": 1}]
    row = make_result({"regions": regions, "kernels": kernels}).regions_report().rows[0]
    assert row["calls"] == 2 and row["flops"] is None and row["flops_rate"] is None


def test_deep_nesting_and_lost_regions() -> None:
    path = "/".join(f"r{i}" for i in range(3000))
    rows = make_result({"kernels": [{"name": "k", "start": 0, "end": 5, "region": path}]}).regions_report().rows
    assert len(rows) == 3000 and rows[0]["gpu_total_ns"] == rows[-1]["gpu_self_ns"] == 5
    assert [r["depth"] for r in rows] == list(range(3000)) and rows[0]["calls"] is None


names = st.sampled_from(["a", "a/b", "a/b/c", "a/d", "e", ""])
work = st.lists(st.tuples(names, st.integers(1, 40), st.integers(0, 9), st.integers(0, 1)), max_size=12)
spans = st.lists(st.tuples(names.filter(bool), st.integers(0, 40), st.integers(0, 20)), max_size=8)


@settings(max_examples=60)
@given(work, spans)
def test_regions_against_points(kernels: list[tuple[str, int, int, int]], regions: list[tuple[str, int, int]]) -> None:
    """Every number of the tree recomputed from sets of nanoseconds."""
    result = make_result(
        {
            "kernels": [{"name": "k", "region": p, "start": s, "end": s + n, "device": d} for p, s, n, d in kernels],
            "regions": [
                {"path": p, "name": p.rpartition("/")[2], "start": s, "end": s + n, "instance": i + 1}
                for i, (p, s, n) in enumerate(regions)
            ],
        }
    )
    running = {t for _, s, n, _ in kernels for t in range(s, s + n)}
    for row in result.regions_report().rows:
        path = row["path"]
        below = [k for k in kernels if (k[0] == path or k[0].startswith(path + "/") if path else not k[0])]
        own = [r for r in regions if r[0] == path and path]
        assert row["gpu_self_ns"] == sum(n for p, _, n, _ in kernels if p == path)
        assert row["gpu_total_ns"] == sum(n for _, _, n, _ in below) and row["kernels"] == len(below)
        assert row["gpu_busy_ns"] == len({(d, t) for _, s, n, d in below for t in range(s, s + n)})
        assert row["calls"] == (len(own) or None)
        if own:
            inside = {t for _, s, n in own for t in range(s, s + n)}
            assert row["host_ns"] == sum(n for _, _, n in own)
            assert row["gpu_idle_ns"] == len(inside - running)
