"""Samples of the host on the page's timeline and in traces: a moment each, on a row of its thread."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from perfetto_trace import Trace
from report_results import make_result
from test_host_samples import perf_text, two_kernels, written
from test_timeline_lanes import slices

from cuptiprof.cli import main
from cuptiprof.data.result import Result
from cuptiprof.errors import ResultError


@pytest.fixture
def sampled(tmp_path: Path) -> Result:
    """Kernels from 1 to 7 ms; samples before, within, of another process, without a stack, and not in the order of time."""
    text = perf_text((0.5, 7, "early"), (4, 7, "load main"), (2, 7, "launch main"), (4, 8, "other"), (7, 7, "last"), (7.1, 7, "late"), (5, 7, ""))  # fmt: skip
    text += "worker 7/9 0.006000000: cpu-clock: \n" + "\t 1f f (lib)\n" * 70 + "\n"
    return two_kernels().with_host_samples(written(tmp_path / "perf.txt", text))


EXPECTED = [("launch", 2.0, 7), ("load", 4.0, 7), ("(no stack)", 5.0, 7), ("f", 6.0, 9), ("last", 7.0, 7)]
DEEP = " < ".join(["f"] * 64 + ["..."])


def test_on_the_page(sampled: Result) -> None:
    drawn = sorted((one for one in slices(sampled) if one["kind"] == "sample"), key=lambda one: one["start"])
    where = {7: "thread 7 (main)", 9: "thread 9"}
    assert [(one["name"], one["start"] / 1e6 + 1, one["group"]) for one in drawn] == [
        (name, at, where[thread]) for name, at, thread in EXPECTED
    ]
    assert {(one["track"], one["end"] - one["start"]) for one in drawn} == {("samples", 0)}
    assert [one["stack"] for one in drawn] == ["launch < main", "load < main", "(no stack)", DEEP, "last"]
    assert not [one for one in slices(two_kernels()) if one["kind"] == "sample"]


def test_in_chrome_json(sampled: Result, tmp_path: Path) -> None:
    sampled.filter("k").export(tmp_path / "t.json")
    events = json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    marks = sorted((e for e in events if e.get("cat") == "cpu_sample"), key=lambda e: e["ts"])
    rows = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["name"] == "thread_name"}
    first = next(e["ts"] for e in sorted(events, key=lambda e: e.get("ts", 0)) if e.get("cat") == "kernel")
    assert [(e["name"], round(e["ts"] - first) / 1e3 + 1, rows[e["pid"], e["tid"]].strip()) for e in marks] == [
        (name, at, f"thread {thread} (samples)") for name, at, thread in EXPECTED
    ]
    assert {e["ph"] for e in marks} == {"i"} and marks[1]["args"]["stack"] == "load < main"


def test_in_perfetto(sampled: Result, tmp_path: Path) -> None:
    trace = Trace(sampled, tmp_path)
    first = min(s["start"] for s in trace.of("kernel"))
    marks = sorted(trace.of("cpu_sample"), key=lambda s: s["start"])
    assert [(s["name"], (s["start"] - first) / 1e6 + 1, trace.track_name(s["track"])) for s in marks] == [
        (name, at, f"thread {thread} (samples)") for name, at, thread in EXPECTED
    ]
    assert marks[1]["args"]["stack"] == "load < main" and all(s["start"] == s["end"] for s in marks)


def test_samples_of_another_clock_or_process_are_refused(tmp_path: Path) -> None:
    for text, said in (
        (perf_text((9e6, 7, "a")), "between the beginning and the end"),
        (perf_text((4, 8, "a")), "process 7"),
    ):
        run = two_kernels().with_host_samples(written(tmp_path / "perf.txt", text))
        for name in ("t.html", "t.json", "t.pftrace"):
            with pytest.raises(ResultError, match=said):
                run.export(tmp_path / name)
            assert not (tmp_path / name).exists()


def test_the_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run, perf = tmp_path / "run.cuptiprof", str(written(tmp_path / "perf.txt", perf_text((4, 7, "load main"))))
    two_kernels().save(run)
    assert main(["export", str(run), "-o", str(tmp_path / "t.json"), "--host-samples", perf]) == 0
    assert "load < main" in (tmp_path / "t.json").read_text()
    assert main(["report", str(run), "--format", "html", "-o", str(tmp_path / "t.html"), "--host-samples", perf]) == 0
    bare = tmp_path / "bare.html"
    assert main(["report", str(run), "--format", "html", "-o", str(bare)]) == 0
    assert (tmp_path / "t.html").stat().st_size > bare.stat().st_size
    capsys.readouterr()
    assert main(["export", str(run), "-o", str(tmp_path / "t.csv"), "--host-samples", perf]) == 1
    assert "csv has no place for samples of the host" in capsys.readouterr().err


def test_a_run_without_anything_to_draw(tmp_path: Path) -> None:
    text = written(tmp_path / "perf.txt", perf_text((4, 7, "a")))
    with pytest.raises(ResultError, match="none of 1 samples lies"):
        make_result({}, {"pid": 7}).with_host_samples(text).export(tmp_path / "t.json")
