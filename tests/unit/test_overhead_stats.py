"""The overhead benchmark's statistics and its table, on numbers made by hand."""

from __future__ import annotations

import contextlib
import time

import numpy as np
import pytest

from benchmarks.overhead import table
from benchmarks.overhead.conditions import Condition, Outcome, missing, no_region
from benchmarks.overhead.ratios import judge_rounds, ratio_of, steps_summary
from benchmarks.overhead.rounds import Cell, orders, run, timed_steps
from benchmarks.overhead.workloads import LOOP_LAUNCHES, LOOP_REGION, Region, Workload, in_threads, launch_loop
from cuptiprof.stats.verdict import Kind


def test_steps_of_known_values() -> None:
    steps = np.random.default_rng(1).permutation([*range(1, 100), 10_000]).tolist()
    s = steps_summary([steps[:50], steps[50:]], 10)
    assert s["median"] == 5.05 and s["samples"] == 100
    assert 3.5 < s["low"] < 5.05 < s["high"] < 6.5
    assert s["p99"] > 9.9  # the one that took 10,000 shows there only
    assert steps_summary([[7.0]]) == {"median": 7, "low": 7, "high": 7, "p99": 7, "confidence": 0, "samples": 1}


def test_ratios_by_round_are_blind_to_drift() -> None:
    """The machine slows down by a factor of twelve over the rounds; the condition always costs 1.5 times the baseline."""
    base = [[10.0 * k, 11.0 * k, 12.0 * k] for k in range(1, 13)]
    cost = [[1.5 * t for t in r] for r in base]
    verdict = judge_rounds(cost, base)
    assert verdict is not None and verdict.kind is Kind.SLOWER
    assert verdict.ratio == pytest.approx(1.5) and verdict.high - verdict.low < 1e-9
    # Eleven rounds are too few for pairs: the drift is in the interval then.
    few = judge_rounds(cost[:11], base[:11])
    assert few is not None and few.high - few.low > 0.1


def test_a_quick_run_is_judged_by_its_steps() -> None:
    rng = np.random.default_rng(3)
    before, after = (rng.normal(mean, 1.0, (3, 40)).tolist() for mean in (100.0, 110.0))
    verdict = judge_rounds(after, before)
    assert verdict is not None and verdict.kind is Kind.SLOWER and verdict.low < 1.1 < verdict.high
    equal = judge_rounds(rng.normal(100.0, 1.0, (3, 40)).tolist(), before)
    assert equal is not None and not equal.differs
    assert judge_rounds([], []) is None
    for bad in (([[1.0]], []), ([[1.0]], [[]])):
        with pytest.raises(ValueError):
            judge_rounds(*bad)


def test_too_few_steps_have_no_interval() -> None:
    json = ratio_of(Cell(during=[[2.0], [8.0]], rounds=[0, 2]), Cell(during=[[1.0], [2.0], [4.0]], rounds=[0, 1, 2]))
    # The rounds that both have: 5 over 2.5.
    assert json is not None and (json["ratio"], json["rounds"]) == (2, 2)
    assert json["low"] is None and json["high"] is None and json["verdict"] == "UNSURE"
    assert table.interval(json) == "too few rounds"
    assert ratio_of(Cell(), Cell()) is None and ratio_of(None, Cell()) is None


def test_only_whole_pairs_of_rounds_are_compared() -> None:
    """Rounds 0, 2, ... go one way, 1, 3, ... the other; here the later of two costs 10 % more, whichever it is."""
    numbers = list(range(16))
    a = Cell(during=[[100.0 if n % 2 else 110.0] for n in numbers], rounds=numbers)
    b = Cell(during=[[110.0 if n % 2 else 100.0] for n in numbers[:-1]], rounds=numbers[:-1])
    found = ratio_of(a, b)
    assert found is not None and found["rounds"] == 14 and found["ratio"] == pytest.approx(1.0)


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
    assert rows["slows"]["step_ratio"]["ratio"] > 2 and "step_ratio" not in rows["imported"]
    assert (
        rows["slows"]["losses"] == {"pool_exhausted": 8}
        and rows["slows"]["result_ms"] == 5
        and rows["slows"]["records"] == 40
    )
    assert rows["slows"]["ns_per_launch"]["median"] == pytest.approx(rows["slows"]["step_ns"]["median"] / 10, rel=1e-3)
    assert 0.5 < rows["slows"]["residue"]["ratio"] < 2
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


def test_findings_are_not_decided_by_two_rounds() -> None:
    workload = waiting(0)
    for rounds, verdict in ((2, "UNSURE"), (12, "FASTER")):
        n = list(range(rounds))
        cells = {
            ("waits", table.EXTERNAL): Cell(during=[[0.8 + 0.0001 * (i * 5 % 13)] for i in n], rounds=n),
            ("waits", table.CALLBACK): Cell(during=[[1.0 + 0.0001 * (i * 7 % 11)] for i in n], rounds=n),
        }
        (finding,) = table.findings([workload], cells)
        assert finding["ratio"]["ratio"] == pytest.approx(0.8, rel=0.01) and finding["ratio"]["verdict"] == verdict


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
