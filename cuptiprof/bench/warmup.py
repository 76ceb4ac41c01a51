"""Before the first sample: calls until the function's time has settled, and a look at what it gives the GPU."""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass, field

from cuptiprof.bench.gpu import Gpu
from cuptiprof.bench.strategies import Call, Strategy
from cuptiprof.bench.strategies.kernel import inspect
from cuptiprof.errors import BenchError, CuptiError, SessionError

WINDOW = 5
SETTLED = 0.05
"""Two windows of calls whose medians differ by no more are settled: less than the noise of single calls, more than a drift
that matters to the median of hundreds."""
MOST_CALLS = 1000
CLOCKS_SECONDS = 0.1
"""An idle GPU takes some tens of milliseconds of work to raise its clocks."""


@dataclass
class Warmup:
    """What the calls before the first sample showed. Times in ns.

    Attributes:
        first_ns: wall time of the very first call: compilation, autotuning, loading of modules are in it.
        call_ns: wall time of a call at the end.
        notes: what a reader must know.
    """

    calls: int = 0
    first_ns: float = 0.0
    call_ns: float = 0.0
    notes: list[str] = field(default_factory=list)


def warm_up(gpu: Gpu, call: Call, seconds: float) -> Warmup:
    """Call the function until two windows of calls agree, for at most `seconds` after the first call.

    Autotuners (Triton, torch.compile, cuDNN) run in the first calls, so they are over before anything is measured.
    """
    out = Warmup()
    least_seconds = min(CLOCKS_SECONDS, seconds) if gpu.device and not gpu.device.simulated else 0.0
    times: list[int] = []

    def once() -> int:
        if call.setup is not None:
            call.setup()
        gpu.synchronize()
        start = gpu.now()
        call.function()
        gpu.synchronize()
        out.calls += 1
        return gpu.now() - start

    out.first_ns = once()
    began = time.monotonic()
    while out.calls < MOST_CALLS:
        times.append(once())
        elapsed = time.monotonic() - began
        settled = len(times) >= 2 * WINDOW and _agree(times[-2 * WINDOW : -WINDOW], times[-WINDOW:])
        if settled and elapsed >= least_seconds:
            break
        if elapsed >= seconds:
            if not settled and len(times) >= 2 * WINDOW:
                out.notes.append(f"its time had not settled after {out.calls} calls of warm-up")
            break
    out.call_ns = statistics.median(times[-WINDOW:])
    return out


def _agree(before: list[int], after: list[int]) -> bool:
    a, b = statistics.median(before), statistics.median(after)
    return abs(a - b) <= SETTLED * max(a, b)


def look_at(gpu: Gpu, call: Call, strategy: Strategy) -> list[str]:
    """Trace one call: refuse what the strategy cannot measure, and say what a reader must know.

    Raises:
        BenchError: it launches nothing, or only from other threads, though the strategy measures GPU work; records were lost.
        SessionError, CuptiError: strategy "kernel" cannot trace here.
    """
    if gpu.device is None:
        call.launches = False
        if strategy.needs_gpu_work:
            raise BenchError(
                f'device="host" has no GPU for strategy {strategy.name!r}', hint='strategy="cpu" or "wall"'
            )
        return []
    try:
        work, result = inspect(gpu, call)
    except (CuptiError, SessionError) as e:
        if strategy.name == "kernel":
            raise
        return [f"its GPU work could not be looked at: {e.message}"]
    found = work.instances(call.label)
    _, _, pieces = work.of(int(found[0])) if len(found) else (0.0, 0.0, ())
    call.launches = bool(pieces) or work.outside > 0
    if strategy.needs_gpu_work and not pieces:
        raise nothing_launched(call.name, work.outside)
    notes = []
    if work.outside:
        notes.append(
            f"{work.outside} kernels or copies came from threads that are not the function's: "
            + ("not counted" if strategy.name == "kernel" else "what they take is in the time")
        )
    mine = result.kernels["thread"] == result.kernels["thread"][0] if len(result.kernels) else []
    if len(mine) and not all(mine):
        notes.append("it launches from several threads")
    streams = set(result.kernels["stream"].tolist())
    if len(streams) > 1:
        notes.append(f"its kernels use {len(streams)} streams" + _overlap(strategy))
    # The harness's own wait is the last one.
    if len(result.synchronizations) > 1 and strategy.name != "wall":
        notes.append("it synchronises: gaps in which the GPU waits for the host are part of it")
    return notes


def _overlap(strategy: Strategy) -> str:
    if strategy.name == "kernel":
        return ": the sum counts what overlaps twice (see the span)"
    return ": events of one stream may not cover the others" if strategy.name == "event" else ""


def nothing_launched(name: str, outside: int) -> BenchError:
    """What is said of a function whose calls give the GPU nothing."""
    if outside:
        return BenchError(
            f"{name!r} launches nothing on the thread that calls it; {outside} kernels or copies came from other threads",
            hint='open a cuptiprof.region on the thread that launches, or use strategy="wall"',
        )
    return BenchError(
        f"{name!r} gives the GPU nothing to do",
        hint='strategy="cpu" or "wall" measure host time; a launch captured into a graph is no work yet',
    )
