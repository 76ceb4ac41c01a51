"""What the harness adds to the time that it measures (nothing), and what it costs outside of it, by phase.

Inside: an empty function by strategies "cpu" and "wall", beside a bare loop that reads the same clock and ``timeit``, each measuring in
turn. Outside: seconds of whole measurements on the host and on the stand-in; a session of strategy "kernel" (one a block of samples);
reading the clocks; the statistics. The stand-in has no GPU: there the numbers are the harness's own, not those of a device.
"""

from __future__ import annotations

import time
import timeit
from collections.abc import Callable
from itertools import repeat
from typing import Any

import numpy as np

import cuptiprof
from benchmarks.common import arguments, finish, in_turn, ratio, summary
from cuptiprof.bench import Count, Kernel, Strategy, default_rule, judge, judge_pairs
from cuptiprof.bench.open_gpu import open_gpu
from cuptiprof.bench.sampling import MeasuredCall
from cuptiprof.bench.sampling.clock_log import ClockLog
from cuptiprof.device.devices import SimulatedDevice
from cuptiprof.stats.statistics import median_interval

BATCH = 5000
"""Empty calls between two readings of the clock: what strategy "cpu" takes for 100 us."""
SAMPLES = 1000
SIZES = (100, 1000, 10_000)
FEW, MANY = 2, 102
KERNELS_IN_CALL = 3


def empty() -> None:
    """The function that is measured."""


def bare_batches(function: Callable[[], None] = empty) -> float:
    """ns of a call: nothing but readings of the clock around calls in a row."""
    times = []
    for _ in range(SAMPLES):
        start = time.perf_counter_ns()
        for _ in repeat(None, BATCH):
            function()
        times.append(time.perf_counter_ns() - start)
    return float(np.median(times)) / BATCH


def bare_single(function: Callable[[], None] = empty) -> float:
    """ns of one call between two readings of the clock, so the time of a reading too."""
    times = []
    for _ in range(SAMPLES):
        start = time.perf_counter_ns()
        function()
        times.append(time.perf_counter_ns() - start)
    return float(np.median(times))


def by_timeit() -> float:
    """timeit's median of repeats, ns of a call."""
    return float(np.median(timeit.Timer(empty).repeat(SAMPLES, BATCH))) / BATCH * 1e9


def inside(rounds: int) -> dict[str, Any]:
    """What each tool says of an empty function, ns, and ours over the others' in the same rounds."""

    def ours(strategy: str) -> Callable[[], float]:
        return lambda: cuptiprof.bench(empty, device="host", strategy=strategy, stop=Count(SAMPLES)).median

    found = in_turn(
        {
            "bare loop": bare_batches,
            "cpu": ours("cpu"),
            "timeit": by_timeit,
            "bare single call": bare_single,
            "wall": ours("wall"),
        },
        rounds,
    )
    difference = found["wall"].samples - found["bare single call"].samples  # of the same round
    return {
        "ns": {m.name: summary(m.samples) for m in found.measurements},
        "cpu to bare loop": ratio(found.verdict("cpu", "bare loop")),
        "cpu to timeit": ratio(found.verdict("cpu", "timeit")),
        "wall less bare single call, ns (the wait is in it)": summary(difference),
    }


def outside(rounds: int) -> dict[str, Any]:
    """Seconds of whole measurements by phase; "samples": the time that was measured itself."""
    device = SimulatedDevice(virtual_clock=True)

    def work() -> None:
        for _ in range(KERNELS_IN_CALL):
            device.sim.launch("kernel", duration_ns=10_000)

    def measured(function: Callable[[], None], strategy: str, where: Any) -> Callable[[], dict[str, float]]:
        def run() -> dict[str, float]:
            began = time.perf_counter_ns()
            m = cuptiprof.bench(function, device=where, strategy=strategy)
            total = time.perf_counter_ns() - began
            phases = {name: m.cost[name] for name in ("warmup", "measuring")}
            rest = total / 1e9 - sum(phases.values())
            samples = {} if m.simulated else {"samples": float(m.samples.sum()) * m.batch / 1e9}
            return {"ns": total, **phases, "rest": rest, **samples, "samples taken": len(m.samples)}

        return run

    cases = {
        "cpu, empty function": measured(empty, "cpu", "host"),
        "wall, empty function": measured(empty, "wall", "host"),
        "wall, a function of 1 ms": measured(lambda: _spin(1_000_000), "wall", "host"),
        f"kernel, stand-in, {KERNELS_IN_CALL} kernels": measured(work, "kernel", device),
    }
    found = in_turn(cases, rounds)
    return {
        m.name: {"total": summary(m.samples, 1e9), **{k: summary(v) for k, v in m.reported.items()}}
        for m in found.measurements
    }


def _spin(ns: int) -> None:
    until = time.perf_counter_ns() + ns
    while time.perf_counter_ns() < until:
        pass


def blocks(rounds: int) -> dict[str, Any]:
    """Strategy "kernel" on the stand-in: us of a session (start, stop, result), of each further sample of it, and of one without a
    stamp of the SM clock (as for functions of several streams, which get two a block)."""
    device = SimulatedDevice(virtual_clock=True)
    strategy: Strategy = Kernel()

    def work() -> None:
        for _ in range(KERNELS_IN_CALL):
            device.sim.launch("kernel", duration_ns=10_000)

    with open_gpu(device) as gpu:
        call = MeasuredCall("work", work, label="cuptiprof.bench:0", longest_ns=100_000)  # a stamp for each sample
        unstamped = MeasuredCall("work", work, label="cuptiprof.bench:0", streams=2)

        def block(count: int, call: MeasuredCall = call) -> Callable[[], object]:
            return lambda: strategy.rounds(gpu, [call], count, False, lambda: None)

        cases = {"few": block(FEW), "many": block(MANY), "unstamped": block(MANY, unstamped)}
        found = in_turn(cases, rounds, strategy="wall")
        log = ClockLog(gpu.clocks, gpu.now, gpu.synchronize)
        reading = cuptiprof.bench(log.read, device="host", strategy="wall", stop=Count(200))
    each = (found["many"].samples - found["few"].samples) / (MANY - FEW)
    stamps = (found["many"].samples - found["unstamped"].samples) / (MANY - 1)
    return {
        "session of two samples": summary(found["few"].samples, 1e3),
        "each further sample": summary(each, 1e3),
        "stamp of the SM clock, in that": summary(stamps, 1e3),
        "reading the clocks": {k: v for k, v in summary(reading.samples, 1e3).items() if k != "samples"},
    }


def statistics() -> dict[str, Any]:
    """us of what is computed from so many samples."""
    rng = np.random.default_rng(1)
    out: dict[str, Any] = {}
    for n in SIZES:
        a, b = rng.lognormal(9, 0.05, (2, n))
        rule = default_rule()
        computed: dict[str, Callable[[], object]] = {
            "median and interval": lambda a=a: median_interval(a),
            "stopping rule": lambda a=a, rule=rule: rule(a, 0.1),
            "verdict": lambda a=a, b=b: judge(a, b),
            "verdict of pairs": lambda a=a, b=b: judge_pairs(a, b),
        }
        for name, function in computed.items():
            m = cuptiprof.bench(function, device="host", strategy="wall", max_seconds=1.0)
            i = m.interval
            out.setdefault(name, {})[str(n)] = {k: round(v / 1e3, 1) for k, v in (("median", i.median), ("low", i.low), ("high", i.high))}  # fmt: skip
    return out


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--rounds", type=int, default=24)
    options = parser.parse_args()
    finish(
        {
            "benchmark": "harness_cost",
            "device": "host, and the stand-in where it is named",
            "inside": inside(options.rounds),
            "seconds_of_a_measurement": outside(options.rounds),
            "kernel_blocks_us (stand-in)": blocks(4 * options.rounds),
            "statistics_us": statistics(),
        },
        options.out,
    )


if __name__ == "__main__":
    main()
