"""What befell the GPUs: out of readings to events, to the steps that they explain, to advice."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np
from report_results import make_result

from cuptiprof.analysis.advice.advise import advise
from cuptiprof.analysis.training_steps.step_clocks import step_clocks
from cuptiprof.analysis.training_steps.step_spans import gpu_steps
from cuptiprof.analysis.utilization.system_events import system_events
from cuptiprof.data.result import Result
from cuptiprof.report import make_report

MS = 1_000_000


def readings(counter: str, values: dict[int, float], device: int = 0) -> list[dict[str, Any]]:
    """`values`: by ms."""
    return [
        {"timestamp": ms * MS, "counter": counter, "device": device, "value": value} for ms, value in values.items()
    ]


def throttled(**more: Any) -> Result:
    """Steps of 100 ms; in the third and fourth, which take 200 ms, a power cap halves the clock of GPU 1. Read every 10 ms."""
    edges = np.array([0, 100, 200, 400, 600, 700]) * MS
    held = {ms: 200 <= ms < 600 for ms in range(5, 700, 10)}
    samples = readings("clock_reasons", {ms: 4.0 if on else 1.0 for ms, on in held.items()}, 1)
    samples += readings("sm_clock", {ms: 990.0 if on else 1980.0 for ms, on in held.items()}, 1)
    samples += readings("sm_clock", dict.fromkeys(held, 1980.0)) + readings("clock_reasons", dict.fromkeys(held, 0.0))
    markers = [
        {"name": f"ProfilerStep#{i}", "category": "step", "start": int(a), "end": int(b)}
        for i, (a, b) in enumerate(pairwise(edges))
    ]
    kernels = [
        {"name": "gemm", "start": m["start"], "end": m["end"], "device": device, "stream": 7, "region": "train/fwd"}
        for m in markers for device in (0, 1)
    ]  # fmt: skip
    tables = {"markers": markers, "kernels": kernels, "system_samples": samples + more.get("samples", [])}
    return make_result(tables, more.get("metadata"))


def test_holds_have_a_range_of_time() -> None:
    (event,) = system_events(throttled())
    assert (event.device, event.kind, event.value) == (1, "power cap", 990.0)
    assert (event.start, event.end) == (200 * MS, 600 * MS)


def test_several_at_once_and_gaps() -> None:
    bits = {0: 0x44, 10: 0x40, 20: 0x08, 30: 0x103, 1000: 0x100}  # a second without readings
    events = system_events(make_result({"system_samples": readings("clock_reasons", bits)}))
    assert [(e.kind, e.start / MS, e.end / MS) for e in events] == [
        ("power cap", -5, 5), ("hardware thermal slowdown", -5, 15), ("hardware slowdown", 15, 25), ("display clock setting", 25, 50),
        ("display clock setting", 980, 1005),
    ]  # fmt: skip
    assert all(math.isnan(e.value) for e in events)


def test_readings_at_odd_times_leave_no_holes() -> None:
    rows = [{"timestamp": at, "counter": "clock_reasons", "device": 0, "value": 4.0} for at in (0, 1001, 2004, 3005)]
    assert [(e.start, e.end) for e in system_events(make_result({"system_samples": rows}))] == [(-500, 3505)]


def test_errors() -> None:
    samples = readings("ecc_corrected", {0: 3, 10: 3, 20: 5}) + readings("ecc_uncorrected", {0: 1, 10: 0, 20: 1})
    samples += readings("xid", {7: 79.0, 12: 1234.0}) + readings("remapped_rows", {0: 0, 1000: 2})
    events = system_events(make_result({"system_samples": samples}))
    assert [(e.kind, e.start / MS, e.end / MS, e.text()) for e in events] == [
        ("rows remapped", 0, 1000, "2"), ("XID", 7, 7, "79: GPU has fallen off the bus"), ("ECC corrected", 10, 20, "2"), ("ECC uncorrected", 10, 20, "1"),
        ("XID", 12, 12, "1234"),
    ]  # fmt: skip


def test_steps_that_they_explain() -> None:
    result = throttled(samples=readings("xid", {650: 31.0}))
    found = step_clocks(result, gpu_steps(result))
    assert found is not None
    assert found.of_median.tolist() == [1, 1, 2, 2, 1] and found.held["power cap"].tolist() == [0, 0, 1, 1, 0]
    assert found.clock.tolist() == [1, 1, 0.5, 0.5, 1]
    rows = make_report(result, "steps").rows
    assert [row["remark"] for row in rows] == [
        *("", "", *["2.00 x the median; power cap 100 % of it; SM clock 50 % of its usual"] * 2), "1.00 x the median; XID (1)",
    ]  # fmt: skip
    assert [row["clock_pct"] for row in rows] == [100, 100, 50, 50, 100] and [r["held_pct"] for r in rows] == [
        0,
        0,
        100,
        100,
        0,
    ]
    (row, xid) = make_report(result, "system-events").rows
    assert (row["steps"], row["region"], row["duration_ns"]) == ("2 to 3", "train/fwd", 400 * MS)
    assert (xid["steps"], xid["region"], xid["detail"]) == ("4", "train/fwd", "31: GPU memory page fault")


def test_a_neighbour_within_the_readings_error_is_not_named() -> None:
    """The cap is read from 203 to 593 ms on, which stands for 198 to 598."""
    result = throttled()
    table = result.system_samples
    table["timestamp"][:] -= 2 * MS
    rows = make_report(result, "steps").rows
    assert [bool(row["remark"]) for row in rows] == [False, False, True, True, False] and rows[1]["held_pct"] == 2
    assert make_report(result, "system-events").rows[0]["steps"] == "2 to 3"
    assert advice(result)["throttled"].place.step == "2, 3"


def test_the_drivers_own_count_of_the_time_goes_before_readings() -> None:
    counted = readings("power_cap_time", {150: 0.0, 250: 10.0, 350: 70.0, 450: 30.0, 550: math.nan, 650: 0.0}, 1)
    result = throttled(samples=counted)
    found = step_clocks(result, gpu_steps(result))
    assert (
        found is not None
    )  # third: 50 of 200 ms at 10 %, 100 at 70 %, 50 at 30 %; first and second: by none, and half of 10 %
    assert found.held["power cap"].round(3).tolist() == [0, 0.1, 0.45, 0.075, 0]


def test_a_run_of_which_nothing_was_read_has_no_more_columns() -> None:
    markers = [{"name": "ProfilerStep#0", "category": "step", "start": 0, "end": 10}]
    assert "remark" not in make_report(make_result({"markers": markers}), "steps").content.data
    assert "--system-profiling on" in str(make_report(make_result({}), "system-events"))
    calm = make_result({"system_samples": readings("power", {0: 1.0})})
    assert "nothing held the clocks" in str(make_report(calm, "system-events"))


def advice(result: Result) -> dict[str, Any]:
    return {finding.rule: finding for finding in advise(result).findings}


def test_advice() -> None:
    found = advice(throttled(samples=readings("xid", {650: 48.0})))
    rule = found["throttled"]
    assert (rule.time, rule.saves, rule.place.step) == (400 * MS, 200 * MS, "2, 3")
    assert (
        "power cap for 400" in rule.text
        and "990 MHz then, 1980 MHz otherwise" in rule.text
        and "nvidia-smi -pl" in rule.try_
    )
    assert "XID 48: double bit ECC error" in found["gpu_errors"].text and found["gpu_errors"].place.step == "4"
    calm = throttled()
    table = calm.system_samples
    table["value"][table["value"] == 990.0] = 1980 * 0.96
    assert not {"throttled", "gpu_errors"} & set(advice(calm))


def test_a_slowdown_that_lasts_is_said_without_a_time() -> None:
    whole = readings("clock_reasons", dict.fromkeys(range(0, 100, 10), 0x40)) + readings(
        "sm_clock", dict.fromkeys(range(0, 100, 10), 600)
    )
    kernels = [{"name": "gemm", "start": 0, "end": 95 * MS, "stream": 7}]
    rule = advice(make_result({"kernels": kernels, "system_samples": whole}))["throttled"]
    assert (
        rule.saves == 0
        and rule.time == 95 * MS
        and "nothing says what it is otherwise" in rule.text
        and "cooling" in rule.try_
    )
    simulated = make_result({"kernels": kernels, "system_samples": whole}, {"simulated": True})
    assert "throttled" not in advice(simulated)


def test_readings_of_a_file_that_are_none() -> None:
    far = [-(2**63), 0, 2**63 - 1]
    for counter in ("clock_reasons", "sm_clock", "xid", "ecc_corrected", "memory_used", "performance_state"):
        for value in (math.nan, math.inf, -1e300, 2.0**64, -5.0):
            rows = [{"timestamp": at, "counter": counter, "device": 0, "value": value} for at in far]
            rows += [{"timestamp": 5, "counter": "clock_reasons", "device": -7, "value": 4.0}]
            kernels = [{"name": "k", "start": 0, "end": 10, "stream": 7}]
            result = make_result(
                {
                    "system_samples": rows,
                    "kernels": kernels,
                    "markers": [{"name": "ProfilerStep#1", "category": "step", "start": 0, "end": 9}],
                }
            )
            for name in ("system-events", "steps", "advise", "system"):
                assert str(make_report(result, name))
