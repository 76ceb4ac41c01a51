"""Before the first sample: calls until the function's time has settled, and a look at what it gives the GPU."""

from __future__ import annotations

import inspect
import statistics
import time
from dataclasses import dataclass, field

from cuptiprof.bench.sampling import MeasuredCall, Strategy
from cuptiprof.bench.sampling.kernel import inspect as trace
from cuptiprof.data.result import Result
from cuptiprof.device.gpu import Meter
from cuptiprof.errors import BenchError, CuptiError, SessionError

WINDOW_CALLS = 5
MAX_WINDOW_DIFFERENCE = 0.05
"""Two windows of calls whose medians differ by no more are settled: less than the noise of single calls, more than a drift
that matters to the median of hundreds."""
MAX_WARMUP_CALLS = 1000
MIN_WARMUP_SECONDS = 0.1
"""An idle GPU takes some tens of milliseconds of work to raise its clocks."""


@dataclass
class Warmup:
    """What the calls before the first sample showed. Times in ns.

    Attributes:
        first_ns: wall time of the very first call: compilation, autotuning, loading of modules are in it.
        call_ns: wall time of a call at the end, by the clock of the GPU's host, which is virtual on a simulated device.
        call_s: the same and its set-up, real seconds.
        notes: what a reader must know.
    """

    calls: int = 0
    first_ns: float = 0.0
    call_ns: float = 0.0
    call_s: float = 0.0
    notes: list[str] = field(default_factory=list)


def warm_up(gpu: Meter, call: MeasuredCall, seconds: float) -> Warmup:
    """Call the function until two windows of calls agree, for at most `seconds` after the first call.

    Autotuners (Triton, torch.compile, cuDNN) run in the first calls, so they are over before anything is measured.
    """
    out = Warmup()
    least_seconds = min(MIN_WARMUP_SECONDS, seconds) if gpu.device and not gpu.device.simulated else 0.0
    times: list[int] = []
    seconds_each: list[float] = []

    def once(check: bool = False) -> int:
        if call.setup is not None:
            call.setup()
        gpu.synchronize()
        start = gpu.now()
        returned = call.function()
        gpu.synchronize()
        took = gpu.now() - start
        out.calls += 1
        if check:
            _refuse_unrun(call.name, returned)
        return took

    out.first_ns = once(check=True)
    began = time.monotonic()
    while out.calls < MAX_WARMUP_CALLS:
        call_began = time.monotonic()
        times.append(round(call.agree(once())))
        seconds_each.append(time.monotonic() - call_began)
        elapsed = call.agree(time.monotonic() - began)
        settled = len(times) >= 2 * WINDOW_CALLS and _agree(
            times[-2 * WINDOW_CALLS : -WINDOW_CALLS], times[-WINDOW_CALLS:]
        )
        if settled and elapsed >= least_seconds:
            break
        if elapsed >= seconds:
            if not settled and len(times) >= 2 * WINDOW_CALLS:
                out.notes.append(f"its time had not settled after {out.calls} calls of warm-up")
            break
    out.call_ns = statistics.median(times[-WINDOW_CALLS:])
    out.call_s = call.agree(statistics.median(seconds_each[-WINDOW_CALLS:]))
    return out


def _refuse_unrun(name: str, returned: object) -> None:
    """Raises BenchError for what stands for a body that has not run: a coroutine or a generator."""
    if inspect.iscoroutine(returned) or inspect.isgenerator(returned) or inspect.isasyncgen(returned):
        kind = (
            "generator"
            if inspect.isgenerator(returned)
            else "coroutine"
            if inspect.iscoroutine(returned)
            else "asynchronous generator"
        )
        if not inspect.isasyncgen(returned):
            returned.close()
        raise BenchError(
            f"{name!r} returns a {kind}, whose body has not run",
            hint="measure a function that runs it: `lambda: list(f(x))`, `lambda: loop.run_until_complete(f(x))`",
        )


def _agree(before: list[int], after: list[int]) -> bool:
    a, b = statistics.median(before), statistics.median(after)
    return abs(a - b) <= MAX_WINDOW_DIFFERENCE * max(a, b)


def look_at(gpu: Meter, call: MeasuredCall, strategy: Strategy) -> list[str]:
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
        work, result = trace(gpu, call)
    except (CuptiError, SessionError) as e:
        if strategy.name == "kernel":
            raise
        return [f"its GPU work could not be looked at: {e.message}"]
    found = work.instances(call.label)
    _, _, pieces = work.of(int(found[0])) if len(found) else (0.0, 0.0, ())
    call.launches = bool(pieces) or work.outside > 0
    call.records = sum(n for _, n, _ in pieces)
    call.longest_ns = max((ns / n for _, n, ns in pieces), default=0.0)
    call.synchronizes = len(result.synchronizations) > 1  # the harness's own wait is the last one
    if strategy.needs_gpu_work and not pieces:
        raise nothing_launched(call.name, work.outside)
    notes = _devices(gpu, call, result)
    if work.outside:
        notes.append(
            f"{work.outside} kernels or copies came from threads that are not the function's: "
            + ("not counted" if strategy.name == "kernel" else "what they take is in the time")
        )
    mine = result.kernels["thread"] == result.kernels["thread"][0] if len(result.kernels) else []
    if len(mine) and not all(mine):
        notes.append("it launches from several threads")
    call.streams = len(set(result.kernels["stream"].tolist()))
    if call.streams > 1:
        notes.append(f"its kernels use {call.streams} streams" + _overlap(strategy))
    if call.synchronizes and strategy.name != "wall":
        notes.append("it synchronises: gaps in which the GPU waits for the host are part of it")
    return notes


def _devices(gpu: Meter, call: MeasuredCall, result: Result) -> list[str]:
    """Waiting, events and clocks are those of one GPU: work on another is refused, or said where it is not all.

    Raises:
        BenchError: none of the work is on that GPU.
    """
    used = sorted({int(d) for t in (result.kernels, result.memcpys, result.memsets) for d in t["device"]})
    if not used or used == [gpu.ordinal]:
        return []
    if gpu.ordinal not in used:
        raise BenchError(
            f"{call.name!r} works on GPU {used[0]}, but waiting, events and clocks are those of GPU {gpu.ordinal}",
            hint=f"torch.cuda.set_device({used[0]}) before, or run with CUDA_VISIBLE_DEVICES={used[0]}",
        )
    shown = ", ".join(map(str, used))
    return [f"its work is on GPUs {shown}; waiting, events and clocks are those of GPU {gpu.ordinal} only"]


def _overlap(strategy: Strategy) -> str:
    if strategy.name == "kernel":
        return ": the sum counts what overlaps twice (see the span)"
    return ": events of one stream may not cover the others" if strategy.name == "event" else ""


def nothing_launched(name: str, outside: int) -> BenchError:
    """What is said of a function whose calls give the GPU nothing."""
    if outside:
        return BenchError(
            f"{name!r} launches nothing on the thread that calls it; {outside} kernels or copies came from other threads",
            hint="""a thread that the function starts works for it, one that is given work by cuptiprof.carry() too; strategy="wall" measures any""",
        )
    return BenchError(
        f"{name!r} gives the GPU nothing to do",
        hint='strategy="cpu" or "wall" measure host time; a launch captured into a graph is no work yet',
    )
