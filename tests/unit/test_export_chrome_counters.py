"""Counters in the Chrome trace."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from metric_results import counted, iterated, launch, replayed, values
from report_results import HOSTILE, make_result, training_step

from cuptiprof.data.result import Result
from cuptiprof.export.chrome.clock import WEEK


def events(result: Result, path: Path) -> list[dict[str, Any]]:
    result.export(path / "t.json", overwrite=True)
    data: list[dict[str, Any]] = json.loads((path / "t.json").read_text())["traceEvents"]
    return data


def test_kernels_carry_what_was_measured(tmp_path: Path) -> None:
    kernels = {e["args"]["correlation"]: e["args"] for e in events(replayed(), tmp_path) if e.get("cat") == "kernel"}
    assert kernels[2]["achieved_occupancy"] == 0.25 and kernels[2]["ipc"] == 1.0 and kernels[3]["ipc"] == 2.0
    assert kernels[4]["ipc"] == 0.5 and "achieved_occupancy" not in kernels[4]  # NaN: nothing was measured
    assert "ipc" not in kernels[1]
    counters = json.loads((tmp_path / "t.json").read_text())["counters"]
    assert counters == ["Counters: strategy replay, chip GV100, 3 passes", "Counters: clocks were locked to base"]


def test_occurrences_share_their_mean(tmp_path: Path) -> None:
    kernels = {e["args"]["correlation"]: e["args"] for e in events(iterated(), tmp_path) if e.get("cat") == "kernel"}
    assert kernels[2]["ipc"] == kernels[3]["ipc"] == 2.0 and "ipc" not in kernels[4]


def test_samples_are_counter_tracks(tmp_path: Path) -> None:
    samples = [
        {"id": i, "kind": 4, "device": i % 2, "start": i * 100_000 + 7, "end": (i + 1) * 100_000} for i in range(1, 5)
    ]
    r = counted(
        samples, [v for i in range(1, 5) for v in values(i, ipc=i / 4, gld_efficiency=50.0 * (i == 2) or float("nan"))]
    )
    found = [e for e in events(r, tmp_path) if e["ph"] == "C"]
    begin = 10**18 % WEEK // 1000  # the run clock's 0
    ipc = [(e["pid"], e["ts"], e["args"]) for e in found if e["name"] == "ipc"]
    assert ipc == [
        (f"GPU {i % 2} Counters", pytest.approx(begin + i * 100 + 0.007, abs=2e-4, rel=0), {"ipc": i / 4})
        for i in range(1, 5)
    ]
    assert [e["args"] for e in found if e["name"] == "gld_efficiency"] == [{"gld_efficiency": 50.0}]


def test_names_that_mean_something_else(tmp_path: Path) -> None:
    name = HOSTILE + "\x07"
    metrics = [{**values(1, x=1.5)[0], "metric": metric} for metric in ("stream", "grid", name)]
    kernel = {"name": "k", "start": 0, "end": 10, "correlation_id": 2, "stream": 7}
    r = make_result({"kernels": [kernel], "metric_ranges": [launch(1, 2, "k")], "metrics": metrics})
    (args,) = [e["args"] for e in events(r, tmp_path) if e.get("cat") == "kernel"]
    assert args["stream"] == 7 and args["metric stream"] == 1.5 and args["grid"] == [4, 106, 1] and args[name] == 1.5


def test_nothing_counted_changes_nothing(tmp_path: Path) -> None:
    assert not any(e["ph"] == "C" for e in events(training_step(), tmp_path))
    assert "counters" not in json.loads((tmp_path / "t.json").read_text())
