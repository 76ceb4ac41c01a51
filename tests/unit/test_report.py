"""Numbers as nvprof prints them, and views against plain loops."""

from __future__ import annotations

import importlib
from collections import defaultdict

import numpy as np
import pytest
from conftest import trace_path
from hypothesis import given
from hypothesis import strategies as st
from report_results import training_step

import cuptiprof
from cuptiprof.analysis.arrays import aggregate
from cuptiprof.analysis.arrays.aggregate import Parts, covered_before, covered_by_group, group_stats, union
from cuptiprof.errors import ResultError
from cuptiprof.session.schedule import Action, schedule
from cuptiprof.text.sizes import parse_bytes
from cuptiprof.text.units import format_byte_rate, format_bytes, format_flop_rate, format_time

# Numbers printed by nvprof itself: five significant digits, six for seconds.
NVPROF = [
    (15_090_000_000, "15.0900s"), (24_417_000, "24.417ms"), (696_980, "696.98us"), (80_159_000, "80.159ms"),
    (2_736_590_000, "2.73659s"), (815_200_000, "815.20ms"), (1_757_500, "1.7575ms"), (928, "928ns"), (2_464, "2.4640us"),
    (46_647_400_000, "46.6474s"), (230_070, "230.07us"), (1_367, "1.3670us"), (592_570_000, "592.57ms"),
]  # fmt: skip


@pytest.mark.parametrize("ns,text", [*NVPROF, (0, "0ns"), (999_999, "1.0000ms"), (999_999_999, "1.00000s")])
def test_times_look_like_nvprofs(ns: float, text: str) -> None:
    assert format_time(ns) == text


def test_averages_agree_with_nvprofs() -> None:
    assert format_time(15_090_000_000 / 618) == "24.417ms"
    assert format_time(46_647_400_000 / 202_752) == "230.07us"


@given(st.integers(0, 10**15))
def test_times_keep_five_digits(ns: int) -> None:
    text = format_time(ns)
    value = float(text.rstrip("nums")) * {"ns": 1, "us": 1e3, "ms": 1e6}.get(text[-2:], 1e9)
    assert value == pytest.approx(ns, rel=5.1e-5)
    for unit, scale in (("s", 10**9), ("ms", 10**6), ("us", 10**3), ("ns", 1)):
        whole, _, rest = format_time(ns, unit).removesuffix(unit).partition(".")  # type: ignore[arg-type]
        assert int(whole) * scale + int(rest or 0) == ns


def test_fixed_units_keep_the_nanoseconds() -> None:
    assert format_time(1500, "us") == "1.500us"
    assert format_time(2_000_000_001, "ms") == "2000.000001ms"
    with pytest.raises(ResultError, match="hours"):
        cuptiprof.open(trace_path("triton-a100")).summary(units="hours")


def test_sizes_and_rates() -> None:
    assert format_bytes(409_600) == "400.00KB" and format_bytes(4) == "4B" and format_bytes(1 << 20) == "1.0000MB"
    assert format_byte_rate(2.8092e9) == "2.8092GB/s" and format_byte_rate(999.999e6) == "1.0000GB/s"
    assert format_flop_rate(312e12) == "312.00TFLOP/s"


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


intervals = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 200), st.integers(0, 50)), max_size=30)


@given(intervals, st.sampled_from([0, 2**60]))
def test_union_covers_the_same_points(rows: list[tuple[int, int, int]], shift: int) -> None:
    group, start, length = np.array(rows, np.int64).reshape(-1, 3).T
    joined = union(group, start + shift, start + shift + length)
    for g in range(4):
        covered = {t for k, a, n in rows if k == g for t in range(a, a + n)}
        mine = joined.group == g
        assert (joined.end - joined.start)[mine].sum() == len(covered) == joined.total_by_group(4)[g]
        assert (joined.start[mine][1:] > joined.end[mine][:-1]).all()
        times = np.arange(-1, 260)
        before = covered_before(joined.start[mine] - shift, joined.end[mine] - shift, times)
        assert before.tolist() == [sum(c < t for c in covered) for t in times.tolist()]


@given(intervals, st.sampled_from([0, 2**60]), st.sampled_from([1, 3, 10**6]))
def test_covered_time_is_that_of_the_union(rows: list[tuple[int, int, int]], shift: int, at_once: int) -> None:
    """Whatever part of the rows is looked at at a time."""
    group, start, length = np.array(sorted(rows, key=lambda row: row[1]), np.int64).reshape(-1, 3).T
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(aggregate, "_AT_ONCE", at_once)
        covered = covered_by_group(group, start + shift, start + shift + length, 5)
    assert covered.tolist() == union(group, start, start + length).total_by_group(5).tolist()


def test_times_too_far_apart_to_be_lifted() -> None:
    group, start = np.array([0, 0, 1, 1, 1]), np.array([0, 2**61, 0, 2**60, 2**62])
    end = np.array([2**62, 2**61 + 1, 5, 2**61, 2**62 + 1])
    want = [2**62, 5 + 2**61 - 2**60 + 1]
    assert union(group, start, end).total_by_group(2).tolist() == want
    order = np.argsort(start, kind="stable")
    assert covered_by_group(group[order], start[order], end[order], 2).tolist() == want


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 9)), max_size=40))
def test_parts_are_the_rows_of_each_group(rows: list[tuple[int, int]]) -> None:
    group = np.array([g for g, _ in rows], np.int64)
    parts = Parts(group, 6)
    assert [parts[g].tolist() for g in range(6)] == [np.flatnonzero(group == g).tolist() for g in range(6)]


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(-(2**61), 2**61)), max_size=20), st.sampled_from([3, 10**6]))
def test_group_stats_against_a_loop(rows: list[tuple[int, int]], at_once: int) -> None:
    rows = [(k, v // max(len(rows), 1)) for k, v in rows]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(aggregate, "_AT_ONCE", at_once)
        stats = group_stats(*np.array(rows, np.int64).reshape(-1, 2).T)
    want = {k: [v for key, v in rows if key == k] for k in sorted({k for k, _ in rows})}
    assert stats.key.tolist() == list(want)
    for i, values in enumerate(want.values()):
        assert (stats.count[i], stats.total[i], stats.minimum[i], stats.maximum[i]) == (
            len(values), sum(values), min(values), max(values),
        )  # fmt: skip


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


def test_trace_handler(tmp_path) -> None:  # type: ignore[no-untyped-def]
    class Finished:
        def result(self) -> cuptiprof.Result:
            return cuptiprof.open(trace_path("triton-a100"))

    path = cuptiprof.tensorboard_trace_handler(tmp_path / "log", "worker0", use_gzip=True)(Finished())
    assert path.name.startswith("worker0.") and path.name.endswith(".pt.trace.json.gz")
    assert len(cuptiprof.open(path).kernels) == 1


@pytest.mark.parametrize("at_once", [1, 2, 3])
def test_csv_is_the_same_whatever_is_made_at_a_time(at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    module = importlib.import_module("cuptiprof.report.render.to_csv")  # by that name the room has the function
    for view in ("gpu-trace", "summary", "regions"):
        report = training_step().report(view, units="us")
        whole = report.to("csv")
        assert len(whole.splitlines()) > 4
        with monkeypatch.context() as patch:
            patch.setattr(module, "_AT_ONCE", at_once)
            assert report.to("csv") == whole
