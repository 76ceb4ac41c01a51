"""Functions measured in turn on the simulated device."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest

import cuptiprof
from cuptiprof.bench import Count, Measurement, judge
from cuptiprof.bench.compare import judge_in_turn
from cuptiprof.data.clock_state import ClockState
from cuptiprof.device.devices import SimulatedDevice
from cuptiprof.errors import BenchError


@pytest.fixture
def machine() -> Iterator[SimulatedDevice]:
    device = SimulatedDevice(virtual_clock=True)
    yield device
    device.sim.clear_faults()


def noisy(machine: SimulatedDevice, ns: float, seed: int, drift: float = 0.0) -> Callable[[], None]:
    """Log-normal times of 2 %; `drift`: relative change a second of the device's time."""
    rng, sim = np.random.default_rng(seed), machine.sim
    begin = sim.now()

    def work() -> None:
        slower = 1 + drift * (sim.now() - begin) / 1e9
        sim.launch("k", duration_ns=int(ns * slower * np.exp(rng.normal(0, 0.02))))
        sim.synchronize()

    return work


def test_a_difference_of_three_percent_is_found_and_equals_are_not_told_apart(machine: SimulatedDevice) -> None:
    found = cuptiprof.compare(
        {"old": noisy(machine, 20_000, 1), "same": noisy(machine, 20_000, 2), "new": noisy(machine, 20_600, 3)},
        device=machine,
        stop=Count(1600),
    )
    assert found.verdicts["new"].kind.value == "SLOWER"
    assert 1.025 < found.verdicts["new"].low < found.verdicts["new"].ratio < found.verdicts["new"].high < 1.035
    assert found.verdicts["same"].kind.value == "SAME"
    assert [m.name for m in found.measurements] == ["old", "same", "new"] and found.base is found["old"]
    assert len({len(m.samples) for m in found.measurements}) == 1
    assert found.verdict("new", "old") == found.verdicts["new"]
    assert found.verdict("old", "new").kind.value == "FASTER" and found.verdict("new", "same").kind.value == "SLOWER"
    with pytest.raises(KeyError):
        found.verdict("new", "older")
    text = str(found)
    assert "SLOWER" in text and "base" in text and "SIMULATED" in text
    frame = found.to_pandas()
    assert frame["function"].tolist() == ["old", "same", "new"] and frame["verdict"].tolist()[1:] == ["SAME", "SLOWER"]
    assert frame["median_ns"].tolist() == [m.median for m in found.measurements]
    assert frame["ratio"][2] == found.verdicts["new"].ratio and found.report().rows[2]["ratio"] == frame["ratio"][2]
    assert "| compare | new |" in found.report().to("markdown")


def test_samples_are_taken_in_turn(machine: SimulatedDevice) -> None:
    order: list[str] = []

    def make(name: str) -> Callable[[], None]:
        def work() -> None:
            order.append(name)
            machine.sim.launch(name, duration_ns=10_000)

        return work

    found = cuptiprof.compare({"a": make("a"), "b": make("b")}, device=machine, stop=Count(200))
    n = len(found.base.samples)
    # Each runs once unmeasured before its sample.
    assert "".join(order[-4 * n :]) == "aabbbbaabbaaaabb" * (n // 4)
    for m in found.measurements:
        assert [k.name for k in m.kernels] == [m.name]


def test_interleaving_takes_out_a_drift_that_back_to_back_runs_show(machine: SimulatedDevice) -> None:
    """The GPU becomes slower by half of its speed a second. Nothing differs between the two functions."""
    one = noisy(machine, 20_000, 1, drift=0.5)
    two = noisy(machine, 20_000, 2, drift=0.5)
    stop = Count(1600)
    first = cuptiprof.bench(one, device=machine, stop=stop)
    second = cuptiprof.bench(two, device=machine, stop=stop)
    apart = judge(first.samples, second.samples)
    assert apart.kind.value == "SLOWER" and apart.low > 1.01  # wrong, as it must be
    in_turn = cuptiprof.compare({"one": one, "two": two}, device=machine, stop=stop).verdicts["two"]
    assert not in_turn.differs and abs(in_turn.ratio - 1) < 0.002


def test_a_round_with_a_discarded_sample_is_left_out_whole(machine: SimulatedDevice) -> None:
    begin = machine.sim.now()
    machine.clocks.at(begin + 40_000_000, ClockState(1000.0, reasons=0x40))
    machine.clocks.at(begin + 70_000_000, ClockState(1980.0))
    found = cuptiprof.compare(
        {"a": noisy(machine, 20_000, 1), "b": noisy(machine, 20_000, 2)}, device=machine, stop=Count(3000)
    )
    a, b = found.measurements
    assert a.discarded and [d.index for d in a.discarded] == [d.index for d in b.discarded]
    # Samples of one function that fall out alone take their round with them.
    lame = Measurement.from_dict(
        {
            **b.to_dict(),
            "samples": b.samples[1:].tolist(),
            "times": b.times[1:].tolist(),
            "span": [],
            "sm_hz": [],
            "discarded": [{"index": int(i), "value": 0.0, "reason": "x"} for i in sorted(
                {d.index for d in b.discarded} | {int(b.places()[0])})],
        }
    )  # fmt: skip
    assert not judge_in_turn(a, lame).differs


def test_one_function_alone_and_functions_without_time_are_refused(machine: SimulatedDevice) -> None:
    with pytest.raises(BenchError, match="two functions"):
        cuptiprof.compare({"a": lambda: None}, device=machine)
    with pytest.raises(BenchError, match="no time"):
        cuptiprof.compare({"a": lambda: None, "b": lambda: None}, device=machine, strategy="cpu", max_seconds=0.05)


def test_the_interval_of_the_rule_is_that_of_each_function(machine: SimulatedDevice) -> None:
    """Measuring goes on until both are known well enough."""
    rng = np.random.default_rng(1)
    wide = lambda: machine.sim.launch("w", duration_ns=int(20_000 * np.exp(rng.normal(0, 0.15))))  # noqa: E731
    found = cuptiprof.compare({"narrow": noisy(machine, 20_000, 1), "wide": wide}, device=machine)
    assert all(m.interval.half_width <= 0.006 for m in found.measurements)
    assert len(found.base.samples) > 1000


def test_what_cannot_be_compared_is_said_before_anything_runs(machine: SimulatedDevice) -> None:
    sim = machine.sim
    before = sim.truth()["kernels"]

    def work() -> None:
        sim.launch("k", duration_ns=5_000)

    for functions, options, words in (
        ([work, work], {}, "two functions"),
        ({"a": work, "b": work}, {"threshold": -1.0}, "threshold"),
        ({"a": work, "b": work}, {"alpha": 2.0}, "alpha"),
    ):
        with pytest.raises(BenchError, match=words):
            cuptiprof.compare(functions, device=machine, **options)  # type: ignore[arg-type]
    assert sim.truth()["kernels"] == before
