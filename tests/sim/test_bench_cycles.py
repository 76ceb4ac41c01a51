"""Verdicts in cycles: a clock that differs between two series is no difference; a difference in cycles is found whatever the clock."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import cuptiprof
from cuptiprof.bench import Count, Measurement
from cuptiprof.bench.results.baseline import compare_results
from cuptiprof.bench.results.in_turn import judge_in_turn
from cuptiprof.bench.results.row import Row
from cuptiprof.bench.results.store import Results, ResultsWriter
from cuptiprof.cli import main
from cuptiprof.data.clock_state import ClockState
from cuptiprof.device.devices import SimulatedDevice
from cuptiprof.errors import BenchError
from cuptiprof.stats.verdict import Kind

RNG = np.random.default_rng(13)


@pytest.fixture
def machine() -> SimulatedDevice:
    return SimulatedDevice(virtual_clock=True)


def clocked(machine: SimulatedDevice, cycles: float) -> Callable[[], None]:
    """A kernel of so many cycles, whose time goes by the clock."""

    def work() -> None:
        state = machine.clocks.read()
        assert state is not None
        machine.sim.launch("k", duration_ns=round(cycles / state.sm_mhz * 1000 * RNG.normal(1, 0.003)))
        machine.sim.synchronize()

    return work


def measured(machine: SimulatedDevice, mhz: float, cycles: float = 200_000) -> Measurement:
    machine.clocks.at(machine.sim.now(), ClockState(mhz))
    return cuptiprof.bench(clocked(machine, cycles), device=machine, stop=Count(400), name="work")


def row(m: Measurement) -> Row:
    return Row("work", measurement=m)


def test_another_clock_is_no_difference_in_cycles(machine: SimulatedDevice, tmp_path: Path, capsys) -> None:
    fast, slow = measured(machine, 1980.0), measured(machine, 1650.0)
    assert slow.median / fast.median == pytest.approx(1.2, rel=0.01)
    results = [Results((row(m),), m.environment) for m in (fast, slow)]
    by_time, by_cycles = (compare_results(*results, cycles=c).points[0].verdict for c in (False, True))
    assert by_time is not None and by_time.kind is Kind.SLOWER
    assert by_cycles is not None and by_cycles.kind is Kind.SAME and by_cycles.ratio == pytest.approx(1, abs=0.005)
    slower = measured(machine, 1980.0, 206_000)  # 3 % more cycles at a clock that hides it
    verdict = compare_results(results[1], Results((row(slower),), slower.environment), cycles=True).points[0].verdict
    assert verdict is not None and verdict.kind is Kind.SLOWER and verdict.ratio == pytest.approx(1.03, abs=0.005)
    # The same from files, on the command line.
    for name, result in zip(("old", "new"), results, strict=True):
        writer = ResultsWriter(str(tmp_path / name), result.environment)
        writer.add(result.rows[0])
        writer.close()
    arguments = ["bench", str(tmp_path / "new"), "--baseline", str(tmp_path / "old"), "--fail-if-slower", "5%"]
    assert main(arguments) == 1 and "SLOWER" in capsys.readouterr().out
    assert main([*arguments, "--in-cycles"]) == 0
    out = capsys.readouterr().out
    assert "SAME" in out and "judged in cycles" in out


def test_a_clock_that_wanders_between_the_samples_in_turn(machine: SimulatedDevice) -> None:
    """A function that draws much power lowers the clock for itself only in so far as it runs longer."""
    for i in range(400):
        machine.clocks.at(machine.sim.now() + i * 10_000_000, ClockState(1980.0 if i % 2 else 1900.0))
    cases = {"a": clocked(machine, 200_000), "b": clocked(machine, 200_000), "c": clocked(machine, 208_000)}
    found = cuptiprof.compare(cases, device=machine, stop=Count(400), in_cycles=True)
    assert found.verdicts["b"].kind is Kind.SAME and found.verdicts["c"].kind is Kind.SLOWER
    assert found.verdicts["c"].ratio == pytest.approx(1.04, abs=0.01) and "judged in cycles" in str(found)
    assert found.verdict("b", "c").kind is Kind.FASTER


def test_the_tick_of_cycles_is_that_of_the_time(machine: SimulatedDevice) -> None:
    """Two series that differ by less than a tick are not told apart in cycles either."""

    def ticked(ns: float) -> Measurement:
        m = measured(machine, 1980.0)
        n = len(m.samples)
        return Measurement.from_dict({**m.to_dict(), "samples": [ns] * n, "span": [], "tick": 32.0, "sm_hz": [2e9] * n})

    verdict = judge_in_turn(ticked(2016.0), ticked(2048.0), cycles=True)
    assert not verdict.differs


def test_without_a_clock_there_is_no_verdict_in_cycles(machine: SimulatedDevice, capsys) -> None:
    m = cuptiprof.bench(clocked(machine, 1e5), device=machine, strategy="wall", stop=Count(20), name="work")
    results = Results((row(m),), m.environment)
    (point,) = compare_results(results, results, cycles=True).points
    assert point.verdict is None and "SM clock" in point.reason
    with pytest.raises(BenchError, match="SM clock"):
        cuptiprof.compare({"a": lambda: None, "b": lambda: None}, device="host", in_cycles=True, stop=Count(20))
    with pytest.raises(BenchError, match="in_cycles="):
        cuptiprof.compare({"a": print, "b": print}, over={"n": [1]}, in_cycles=True)
    with pytest.raises(SystemExit):
        main(["bench", "x.jsonl", "--in-cycles"])
    assert "--in-cycles needs --baseline" in capsys.readouterr().err
