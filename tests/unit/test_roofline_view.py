"""The roofline of measured kernels: by hand, and against a loop over every launch."""

from __future__ import annotations

import random
from collections import defaultdict
from typing import Any

import pytest
from metric_results import NAN, counted, launch, replayed, values
from report_results import make_result

PEAKS = {"fp32_peak": 20e12, "dram_peak": 1e12, "l2_peak": 4e12}


def roofs(**of: float) -> dict[str, float]:
    return {f"roofline_{name}": value for name, value in of.items()}


def test_a_kernel_under_two_roofs_by_hand() -> None:
    measured = roofs(fp32_achieved=5e12, fp16_achieved=0.0, dram_achieved=0.5e12, l2_achieved=0.2e12, **PEAKS)
    rows = counted([launch(1, 2)], values(1, **measured)).report("roofline").rows
    found = [
        [row[k] for k in ("precision", "level", "intensity", "ridge", "bound", "share_pct", "launches", "time_ns")]
        for row in rows
    ]
    assert found == [
        ["fp32", "dram", 10.0, 20.0, "memory", 50.0, 1, 10_000],  # 10 x 1e12 attainable
        ["fp32", "l2", 25.0, 5.0, "compute", 25.0, 1, 10_000],  # 20e12 attainable
    ]
    assert (rows[0]["flop_per_s"], rows[0]["peak_flop_per_s"], rows[0]["bytes_per_s"], rows[0]["peak_bytes_per_s"]) == (
        5e12,
        20e12,
        0.5e12,
        1e12,
    )


def test_rates_of_launches_are_means_by_their_time() -> None:
    ranges = [launch(1, 2), launch(2, 3), launch(3, 99)]  # 10,000 and 12,345 ns; of the third no kernel came
    rows = [v for i, rate in ((1, 1e12), (2, 3e12)) for v in values(i, **roofs(fp32_achieved=rate))]
    (row,) = counted(ranges[:2], rows).report("roofline").rows
    assert row["flop_per_s"] == pytest.approx((1e12 * 10_000 + 3e12 * 12_345) / 22_345) and row["time_ns"] == 22_345
    (row,) = counted(ranges, rows + values(3, **roofs(fp32_achieved=5e12))).report("roofline").rows
    assert row["flop_per_s"] == pytest.approx(3e12)  # all alike
    timed = {"gpu__time_duration.sum": 100.0}
    (row,) = (
        counted(ranges[:2], rows + values(1, **timed) + values(2, **(timed | {"gpu__time_duration.sum": 300.0})))
        .report("roofline")
        .rows
    )
    assert row["flop_per_s"] == pytest.approx(2.5e12) and row["time_ns"] == 400


def test_what_is_missing_is_not_made_up() -> None:
    def only(**of: float) -> dict[str, Any]:
        (row,) = counted([launch(1, 2)], values(1, **roofs(**of))).report("roofline").rows
        return {key: row[key] for key in ("precision", "level", "intensity", "ridge", "bound", "share_pct")}

    assert only(fp32_achieved=5e12) == dict.fromkeys(("level", "intensity", "ridge", "bound", "share_pct")) | {
        "precision": "fp32"
    }
    assert only(fp32_achieved=5e12, fp32_peak=10e12)["share_pct"] == 50
    assert only(fp32_achieved=0.0, dram_achieved=1e11, dram_peak=1e12) == {
        "precision": None, "level": "dram", "intensity": None, "ridge": None, "bound": None, "share_pct": 10.0,
    }  # fmt: skip
    assert only(fp32_achieved=5e12, dram_achieved=1e12, dram_peak=1e12)["bound"] is None
    assert counted([launch(1, 2)], values(1, **roofs(fp32_peak=1e12))).report("roofline").rows == []


@pytest.mark.parametrize("result", [make_result({}), replayed()], ids=["no counters", "other counters"])
def test_it_says_how_to_measure(result: Any) -> None:
    report = result.report("roofline")
    assert report.rows == [] and "cuptiprof run --metrics roofline PROGRAM" in str(report).replace("\n", " ")


@pytest.mark.parametrize("seed", range(6))
def test_against_a_loop_over_launches(seed: int) -> None:
    rng = random.Random(seed)
    roofs_there = ("fp32", "tensor_src_fp16", "dram", "l2")
    ranges, rows = [], []
    total: dict[Any, list[float]] = defaultdict(lambda: [0.0, 0.0])
    for i in range(1, 200):
        name, device = rng.choice(("a", "b")), rng.choice((0, 1))
        ranges.append(launch(i, 0, name=name, device=device))
        lasted = float(rng.randint(1, 1000))
        measured = {"gpu__time_duration.sum": lasted}
        for roof in roofs_there:
            for what in ("achieved", "peak"):
                value = rng.choice((NAN, *[rng.uniform(1e9, 1e13)] * 4))
                measured[f"roofline_{roof}_{what}"] = value
                if value == value:
                    entry = total[device, name, roof, what]
                    entry[0] += value * lasted
                    entry[1] += lasted
        rows += values(i, **measured)
    mean = {key: sums / time for key, (sums, time) in total.items()}
    for row in counted(ranges, rows).report("roofline").rows:
        where, precision = (row["device"], row["name"]), row["precision"].replace(" ", "_")
        work, peak = (mean[(*where, precision, what)] for what in ("achieved", "peak"))
        traffic, most = (mean[(*where, row["level"], what)] for what in ("achieved", "peak"))
        assert row["intensity"] == pytest.approx(work / traffic)
        assert row["share_pct"] == pytest.approx(100 * work / min(peak, work / traffic * most))
        assert row["bound"] == ("memory" if work / traffic < peak / most else "compute")
    assert len(counted(ranges, rows).report("roofline").rows) == 2 * 2 * 2 * 2
