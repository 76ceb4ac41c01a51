"""Time between CUDA events around a call, and of replays of a captured graph.

The stream is held while it is given a sample (``Meter.hold``): the GPU then does the work without waiting for the host, whose launches
of short kernels take longer than these. NVBench does the same with a kernel that waits for the host.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from cuptiprof.bench.sampling.clock_stamps import ClockStamps
from cuptiprof.bench.sampling.strategy import MeasuredCall, Sample, Strategy, Tick, before_sample, orders, repeated
from cuptiprof.device.gpu import Meter
from cuptiprof.errors import BenchError
from cuptiprof.text.units import format_time

FILL_NS = 1_000_000
"""Shorter calls are repeated until a sample lasts so long: events are stamped to half a microsecond, and they and the start of a graph
take some microseconds of their own, less than 1 % of this."""
MAX_PENDING = 500
"""Kernels, copies and sets that a held stream is given: with about a thousand pending the next launch waits."""
MAX_UNKNOWN_CALLS = 50
"""of a sample, where it is not known what a call launches"""
MAX_GRAPH_NODES = 20_000
MAX_TRIES = 4
LEAST_HOLD_NS = 20_000
MAX_HOLD_NS = 20_000_000
HOLD_FACTOR = 1.5
"""The stream is held for so many times of what giving it a sample took: the host is slower now and then."""
LEAST_ENCLOSED = 0.5
"""of the longest kernel of a call: less between the events means that it runs in another stream"""
PACED = 1.1
"""A sample that lasts no longer than this times its launching waits for the host."""
SAID_SHARE = 0.02


EVENT_STEP_NS = 500.0
"""CUDA Runtime API, cudaEventElapsedTime: "a resolution of around 0.5 microseconds". Samples that show less count for themselves."""


class Event(Strategy):
    """Time between two events around the call on the stream that is current.

    The stream does not wait for the host, unless the call does (or launches more than can be pending): then that is said. Short calls
    are batched when the L2 need not be cold; a sample is then the mean of ``batch`` calls.
    """

    name: ClassVar[str] = "event"
    clock_step_ns: ClassVar[float | None] = EVENT_STEP_NS

    def prepare(self, gpu: Meter, call: MeasuredCall, estimate_ns: float, cold: bool) -> None:
        single = cold or call.setup is not None
        if call.synchronizes or call.records > MAX_PENDING:
            call.batch = 1 if single else max(1, min(MAX_UNKNOWN_CALLS, round(FILL_NS / max(estimate_ns, 1.0))))
            return
        one = try_out(gpu, call, call.function)
        check_enclosed(call, one.ns)
        if not single:
            pending = MAX_PENDING // call.records if call.records else MAX_UNKNOWN_CALLS
            holdable = MAX_HOLD_NS / HOLD_FACTOR / max(one.launching_ns, 1)
            call.batch = max(1, math.floor(min(pending, holdable, round(FILL_NS / max(one.ns, 1.0)))))
        call.hold_ns = min(MAX_HOLD_NS, LEAST_HOLD_NS + round(HOLD_FACTOR * one.launching_ns * call.batch))
        call.notes += overhead_note(gpu, call, one.ns)

    def rounds(
        self, gpu: Meter, calls: Sequence[MeasuredCall], count: int, cold: bool, tick: Tick
    ) -> list[list[Sample]]:
        runs = [c.function if c.batch == 1 else repeated(c.function, c.batch) for c in calls]
        return between_events(gpu, calls, runs, count, cold, tick)


class Graph(Strategy):
    """The call captured into a CUDA graph, as often as fills a millisecond, and the time of its replays by events."""

    name: ClassVar[str] = "graph"
    clock_step_ns: ClassVar[float | None] = EVENT_STEP_NS

    def prepare(self, gpu: Meter, call: MeasuredCall, estimate_ns: float, cold: bool) -> None:
        least = call.batch = call.copies  # a replay goes through all of them
        call.kept = gpu.capture(call.function if least == 1 else repeated(call.function, least))
        call.kept()  # the first launch of a graph uploads it
        took = try_out(gpu, call, call.kept)
        check_enclosed(call, took.ns)
        most = max(1, MAX_GRAPH_NODES // max(call.records, 1))
        for _ in range(MAX_TRIES if call.setup is None and not cold else 0):
            wanted = least * math.ceil(min(most, 1.05 * call.batch * FILL_NS / max(took.ns, 1.0)) / least)
            if took.ns >= FILL_NS or wanted <= call.batch:
                break
            call.batch = wanted
            call.kept = gpu.capture(repeated(call.function, wanted))
            call.kept()
            took = try_out(gpu, call, call.kept)
        call.hold_ns = min(MAX_HOLD_NS, LEAST_HOLD_NS + round(HOLD_FACTOR * took.launching_ns))
        call.notes += overhead_note(gpu, call, took.ns)

    def rounds(
        self, gpu: Meter, calls: Sequence[MeasuredCall], count: int, cold: bool, tick: Tick
    ) -> list[list[Sample]]:
        return between_events(gpu, calls, [c.kept for c in calls], count, cold, tick)


@dataclass(frozen=True)
class TriedSample:
    """What one sample took, ns: the GPU between the events, and the host to give it the work."""

    ns: float
    launching_ns: int


def try_out(gpu: Meter, call: MeasuredCall, run: Callable[[], object]) -> TriedSample:
    """A sample in a stream that is held for as long as that takes."""
    hold = LEAST_HOLD_NS
    while True:
        if call.setup is not None:
            call.setup()
        gpu.synchronize()
        first, second = gpu.events(2)[:2]
        gpu.hold(hold)
        began = gpu.now()
        gpu.record(first)
        run()
        gpu.record(second)
        launching, dry = round(call.agree(gpu.now() - began)), call.agree(gpu.passed(first))
        gpu.synchronize()
        if not dry or hold >= MAX_HOLD_NS:
            return TriedSample(call.agree(gpu.elapsed_ns(first, second)), launching)
        hold = min(MAX_HOLD_NS, 2 * max(hold, launching))


def check_enclosed(call: MeasuredCall, ns: float) -> None:
    """Raises BenchError when the work of a call is not what the events enclose."""
    if ns < LEAST_ENCLOSED * call.longest_ns:
        raise BenchError(
            f"the work of {call.name!r} is not in the stream that is current: a kernel takes {format_time(call.longest_ns)}, "
            f"and between the events around the call there are {format_time(ns)}",
            hint='strategy="kernel" needs no stream; PyTorch: measure inside of `with torch.cuda.stream(s)`; CuPy: `with s`; Numba: stream=s',
        )


def overhead_note(gpu: Meter, call: MeasuredCall, ns: float) -> list[str]:
    """A sentence when the events themselves are a part of a call's time that matters."""
    if call.batch > 1:
        return []
    own = try_out(gpu, MeasuredCall("nothing", lambda: None), lambda: None).ns
    share = own / max(ns, 1.0)
    return (
        [f"two events with nothing between them are {format_time(own)} apart: that is in its time"]
        if share > SAID_SHARE
        else []
    )


def between_events(
    gpu: Meter, calls: Sequence[MeasuredCall], runs: Sequence[Any], count: int, cold: bool, tick: Tick
) -> list[list[Sample]]:
    """Samples by events; read after the last, so that the GPU never waits for the host to read."""
    pending: list[list[tuple[int, int, bool, Any, Any, int]]] = [[] for _ in calls]
    stamps, taken = ClockStamps(gpu, count * len(calls)), 0
    events = iter(gpu.events(2 * count * len(calls)))
    for order in orders(len(calls), count):
        tick()
        for i in order:
            call, run = calls[i], runs[i]
            before_sample(gpu, call, cold, len(calls) > 1)
            first, second = next(events), next(events)
            stamps.before_sample()
            if call.hold_ns:
                gpu.hold(call.hold_ns)
            at = gpu.now()
            gpu.record(first)
            run()
            gpu.record(second)
            launching = gpu.now() - at
            dry = call.hold_ns > 0 and gpu.passed(first)
            if dry:
                call.hold_ns = min(MAX_HOLD_NS, 2 * max(call.hold_ns, launching))
            pending[i].append((at, launching, dry, first, second, taken))
            taken += 1
    stamps.after_last()
    gpu.synchronize()
    clocks = stamps.rates().tolist()
    return [
        [_sample(gpu, call, *one, sm_hz=clocks[number]) for *one, number in waiting]
        for call, waiting in zip(calls, pending, strict=True)
    ]


def _sample(
    gpu: Meter, call: MeasuredCall, at: int, launching: int, dry: bool, first: Any, second: Any, *, sm_hz: float
) -> Sample:
    ns = gpu.elapsed_ns(first, second)
    if not call.hold_ns and ns < PACED * launching:
        call.paced += 1
    doubt = "the stream ran dry: the host was slow" if dry else ""
    return Sample(ns / call.batch, at, doubt=doubt, sm_hz=sm_hz)
