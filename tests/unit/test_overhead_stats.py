"""The overhead benchmark's statistics and its table, on numbers made by hand."""

from __future__ import annotations

import contextlib
import sys
import time
from pathlib import Path

import numpy as np
import pytest

sys.path.append(str(Path(__file__).resolve().parents[2]))  # last: the package must stay the installed one

from benchmarks.overhead import table
from benchmarks.overhead.conditions import Condition, Outcome, missing, no_region
from benchmarks.overhead.rounds import Cell, orders, run, timed_steps
from benchmarks.overhead.stats import bootstrap_medians, differs_from_one, estimate, ratio_by_round, ratio_of_medians
from benchmarks.overhead.workloads import LOOP_LAUNCHES, LOOP_REGION, Region, Workload, in_threads, launch_loop


def test_estimate_of_known_values() -> None:
    e = estimate([*range(1, 100), 10_000])
    assert e.median == 50.5 and e.samples == 100
    assert e.low < 50.5 < e.high and e.low > 35 and e.high < 65
    assert e.p99 == pytest.approx(np.percentile([*range(1, 100), 10_000], 99))
    assert estimate([7.0]).as_dict() == {"median": 7.0, "low": 7.0, "high": 7.0, "p99": 7.0, "samples": 1}
    with pytest.raises(ValueError, match="no samples"):
        estimate([])


def test_the_interval_covers_the_true_median_as_often_as_it_says() -> None:
    rng = np.random.default_rng(5)
    hits = 0
    for i in range(200):
        e = estimate(rng.exponential(1.0, 60).tolist(), seed=i)
        hits += e.low <= np.log(2) <= e.high
    assert 0.88 <= hits / 200 <= 0.995


def test_bootstrap_in_blocks_is_repeatable() -> None:
    samples = np.arange(30_000, dtype=float)
    a = bootstrap_medians(samples, 3, resamples=150)
    assert a.shape == (150,) and np.array_equal(a, bootstrap_medians(samples, 3, resamples=150))
    assert abs(float(a.mean()) - 15_000) < 200


def test_ratios() -> None:
    r = ratio_of_medians([2.0, 2.2, 1.8] * 20, [1.0, 1.1, 0.9] * 20)
    assert r.median == 2.0 and r.low <= 2.0 <= r.high
    assert differs_from_one(r)
    with pytest.raises(ValueError, match="not positive"):
        ratio_of_medians([1.0], [0.0])


def test_ratio_by_round_is_blind_to_drift() -> None:
    """The machine slows down by a factor of ten over the rounds; the condition always costs 1.5 times the baseline."""
    base = [[10.0 * k, 11.0 * k, 12.0 * k] for k in range(1, 11)]
    cost = [[1.5 * t for t in r] for r in base]
    r = ratio_by_round(cost, base)
    assert r.median == pytest.approx(1.5) and r.high - r.low < 1e-9
    pooled = ratio_of_medians([t for x in cost for t in x], [t for x in base for t in x])
    assert pooled.high - pooled.low > 0.1
    assert not differs_from_one(ratio_by_round([[1.0], [1.2], [0.8]], [[1.0], [1.0], [1.0]]))
    for bad in (([[1.0]], []), ([[1.0]], [[]])):
        with pytest.raises(ValueError):
            ratio_by_round(*bad)


def test_orders_take_turns() -> None:
    all_orders = list(orders(["a", "b", "c", "d"], 8))
    assert all(sorted(o) == ["a", "b", "c", "d"] for o in all_orders)
    assert {o[0] for o in all_orders} == {"a", "b", "c", "d"}


def waiting(seconds: float, launches: int = 10) -> Workload:
    def step(region: Region) -> None:
        with region("r"):
            time.sleep(seconds)

    return Workload("waits", launches, step)


class Slows:
    """A condition that makes every region 3 ms longer and leaves `residue` ms behind."""

    def __init__(self, residue: float = 0.0) -> None:
        self.on = 0

    def region(self, name: str) -> contextlib.AbstractContextManager[object]:
        time.sleep(0.003)
        return contextlib.nullcontext()

    def start(self) -> Region:
        self.on += 1
        return self.region

    def stop(self) -> Outcome:
        self.on -= 1
        return Outcome(5_000_000, 40, {"pool_exhausted": 2})


def test_a_run_gives_rows_ratios_and_reasons() -> None:
    slows = Slows()

    def refuses() -> Region:
        raise OSError("another tool holds CUPTI")

    conditions = [
        Condition("imported", "baseline", lambda: no_region, Outcome),
        Condition("slows", "ours", slows.start, slows.stop),
        Condition("refuses", "peer", refuses, Outcome),
        missing("Proton", "peer", "needs a GPU"),
    ]
    workload = waiting(0.001)
    cells = run([workload], conditions, 4, 0.004, time.monotonic() + 60)
    assert slows.on == 0
    rows = {r["condition"]: r for r in table.rows([workload], conditions, cells, {"triton": "no GPU"})}
    assert rows["slows"]["step_ratio"]["median"] > 2 and rows["imported"]["step_ratio"]["median"] == 1
    assert (
        rows["slows"]["losses"] == {"pool_exhausted": 8}
        and rows["slows"]["result_ms"] == 5
        and rows["slows"]["records"] == 40
    )
    assert rows["slows"]["ns_per_launch"]["median"] == pytest.approx(rows["slows"]["step_ns"]["median"] / 10, rel=1e-3)
    assert 0.5 < rows["slows"]["residue"]["median"] < 2
    assert rows["refuses"] == rows["refuses"] | {"available": False, "reason": "OSError: another tool holds CUPTI"}
    assert rows["Proton"]["reason"] == "needs a GPU" and rows["all"]["reason"] == "no GPU"
    data = {
        "simulated": True,
        "device": "sim",
        "rows": list(rows.values()),
        "findings": table.findings([workload], cells),
    }
    text = table.text(data)
    assert "Simulated" in text and "another tool holds CUPTI" in text and "lost: {'pool_exhausted': 8}" in text


def test_a_missing_round_is_left_out_on_both_sides() -> None:
    base = Cell(during=[[1.0], [2.0], [4.0]], rounds=[0, 1, 2])
    cell = Cell(during=[[2.0], [8.0]], rounds=[0, 2])
    value = table.ratio(cell, base)
    assert value is not None and value.median == 2.0 and value.samples == 2
    assert table.ratio(cell, Cell()) is None and table.ratio(None, base) is None


def test_findings_ask_for_three_rounds_before_they_decide() -> None:
    workload = waiting(0)
    for rounds, decided in ((2, False), (5, True)):
        n = list(range(rounds))
        cells = {
            ("waits", table.EXTERNAL): Cell(during=[[0.8]] * rounds, rounds=n),
            ("waits", table.CALLBACK): Cell(during=[[1.0]] * rounds, rounds=n),
        }
        (finding,) = table.findings([workload], cells)
        assert finding["ratio"]["median"] == 0.8 and finding["beyond_noise"] is decided


def test_no_round_begins_after_the_deadline() -> None:
    conditions = [Condition("imported", "baseline", lambda: no_region, Outcome)]
    cells = run([waiting(0.0005)], conditions, 50, 0.002, time.monotonic() - 1)
    assert cells["waits", "imported"].rounds == [0]


def test_launch_loops_share_the_launches_and_show_errors() -> None:
    calls: list[int] = []
    w = launch_loop("loop", lambda: calls.append(1), lambda: None, 4)
    assert w.launches == 4 * LOOP_LAUNCHES
    assert len(timed_steps(w, no_region, 2)) == 2
    assert len(calls) == 3 * w.launches // LOOP_REGION

    def fails() -> None:
        raise OSError("no device")

    with pytest.raises(OSError, match="no device"):
        in_threads(3, fails)
