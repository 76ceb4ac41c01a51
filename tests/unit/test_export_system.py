"""Readings of the system as counter tracks of a trace."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from perfetto_trace import Trace
from report_results import make_result

import cuptiprof
from cuptiprof.analysis.utilization.system_events import system_events
from cuptiprof.data.result import Result

BEFELL = [
    {"timestamp": at, "counter": counter, "device": 1, "value": value}
    for at, counter, value in (
        (1500, "clock_reasons", 4.0), (1600, "clock_reasons", 4.0), (1700, "clock_reasons", 0.0),
        (1500, "sm_clock", 990.0), (1600, "sm_clock", 990.0), (1700, "sm_clock", 1980.0), (1650, "xid", 79.0),
    )
]  # fmt: skip
ROWS = [
    {"timestamp": 2000 + i, "counter": counter, "device": device, "value": value}
    for i, (counter, device, value) in enumerate((("power", 1, 300.5), ("power", 1, 310.0), ("process_cpu", -1, 150.0)))
]
RESULT = make_result({"kernels": [{"name": "k", "start": 1000, "end": 3000}], "system_samples": ROWS}, {"pid": 9})


def test_chrome(tmp_path: Path) -> None:
    RESULT.export(tmp_path / "t.json")
    events = [e for e in json.loads((tmp_path / "t.json").read_text())["traceEvents"] if e.get("cat") == "system"]
    assert [(e["ph"], e["pid"], e["name"], e["args"]) for e in events] == [
        ("C", "GPU 1 System", "Power (W)", {"power": 300.5}),
        ("C", "GPU 1 System", "Power (W)", {"power": 310.0}),
        ("C", "Host System", "Process CPU (%)", {"process_cpu": 150.0}),
    ]
    assert round(1000 * (events[1]["ts"] - events[0]["ts"])) == 1


def test_perfetto(tmp_path: Path) -> None:
    RESULT.export(tmp_path / "t.pftrace")
    data = (tmp_path / "t.pftrace").read_bytes()
    assert b"Power (W)" in data and b"Host: Process CPU (%)" in data


def befallen() -> Result:
    return make_result(
        {"kernels": [{"name": "k", "start": 1000, "end": 3000}], "system_samples": BEFELL},
        {"pid": 9, "clock_pairs": [[0, 10**18]]},
    )


def test_what_befell_in_chrome(tmp_path: Path) -> None:
    result = befallen()
    result.export(tmp_path / "t.json")
    events = [e for e in json.loads((tmp_path / "t.json").read_text())["traceEvents"] if e.get("cat") == "system_event"]
    assert [(e["ph"], e["pid"], e["tid"], e["name"], e["args"]) for e in events] == [
        ("X", "GPU 1 System", "power cap", "power cap", {"detail": "SM clock 990 MHz"}),
        ("i", "GPU 1 System", "XID", "XID", {"detail": "79: GPU has fallen off the bus"}),
    ]
    assert round(1000 * events[0]["dur"]) == 200 and round(1000 * (events[1]["ts"] - events[0]["ts"])) == 200
    again = cuptiprof.open(tmp_path / "t.json")
    unix = result.clock_to_unix(0) - again.clock_to_unix(0)
    assert [(e.kind, e.start + unix, e.end + unix, e.value) for e in system_events(result)] == [
        (e.kind, e.start, e.end, e.value) for e in system_events(again)
    ]
    assert "not_kept" not in again.metadata


def test_what_befell_in_perfetto(tmp_path: Path) -> None:
    trace = Trace(befallen(), tmp_path)
    assert [(s["name"], trace.base + s["start"], trace.base + s["end"]) for s in trace.of("system_event")] == [
        ("power cap", 10**18 + 1450, 10**18 + 1650), ("XID", 10**18 + 1650, 10**18 + 1650),
    ]  # fmt: skip
    names = {track[2][0] for track in trace.tracks.values() if 2 in track}
    assert {b"System: power cap", b"System: XID"} <= names


@pytest.mark.parametrize(
    "broken",
    [
        {"args": {"power": True}}, {"args": {"power": [1]}}, {"args": {"nonsense": 1}}, {"args": {}}, {"args": 5}, {"args": {"power": "x"}},
        {"pid": "GPU -1 System"}, {"pid": "GPU 99999999999 System"}, {"pid": 4}, {"pid": None}, {"ts": "x"}, {"ts": 1e300},
    ],
)  # fmt: skip
def test_counters_of_a_file_that_are_none(broken: dict[str, Any], tmp_path: Path) -> None:
    good = {"ph": "C", "cat": "system", "name": "n", "pid": "GPU 1 System", "ts": 5, "args": {"power": 300.5}}
    (tmp_path / "t.json").write_text(
        json.dumps({"traceEvents": [good, good | broken, good | {"args": {"power": None}}]})
    )
    result = cuptiprof.open(tmp_path / "t.json")
    value = result.system_samples["value"]
    assert value[0] == 300.5 and np.isnan(value[1]) and len(value) == 2 and result.losses["unknown_records"] == 1
