"""Time between CUDA events around a call, and of replays of a captured graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from cuptiprof.bench.sampling.strategy import MeasuredCall, Sample, Strategy, Tick, before_sample, orders, repeated
from cuptiprof.device.gpu import Meter

MIN_BATCH_NS = 50_000
"""Events are stamped to about half a microsecond: shorter calls are repeated between two events until this is filled."""
MAX_BATCH_CALLS = 200


class Event(Strategy):
    """Time between two events around the call on the stream that is current, gaps that the host leaves included.

    Short calls are batched when the L2 need not be cold; then a sample is the mean of ``batch`` calls.
    """

    name: ClassVar[str] = "event"

    def prepare(self, gpu: Meter, call: MeasuredCall, estimate_ns: float, cold: bool) -> None:
        call.batch = batch_of(call, estimate_ns, cold)

    def rounds(
        self, gpu: Meter, calls: Sequence[MeasuredCall], count: int, cold: bool, tick: Tick
    ) -> list[list[Sample]]:
        runs = [c.function if c.batch == 1 else repeated(c.function, c.batch) for c in calls]
        return between_events(gpu, calls, runs, count, cold, tick)


class Graph(Strategy):
    """The call captured once into a CUDA graph, and the time of its replays by events: no host cost of launching is in it."""

    name: ClassVar[str] = "graph"

    def prepare(self, gpu: Meter, call: MeasuredCall, estimate_ns: float, cold: bool) -> None:
        call.batch = batch_of(call, estimate_ns, cold)
        call.kept = gpu.capture(call.function if call.batch == 1 else repeated(call.function, call.batch))
        call.kept()  # the first launch of a graph uploads it
        gpu.synchronize()

    def rounds(
        self, gpu: Meter, calls: Sequence[MeasuredCall], count: int, cold: bool, tick: Tick
    ) -> list[list[Sample]]:
        return between_events(gpu, calls, [c.kept for c in calls], count, cold, tick)


def batch_of(call: MeasuredCall, estimate_ns: float, cold: bool) -> int:
    """How many calls a sample has: one where each call needs a state of its own."""
    if cold or call.setup is not None:
        return 1
    return max(1, min(MAX_BATCH_CALLS, round(MIN_BATCH_NS / max(estimate_ns, 1.0))))


def between_events(
    gpu: Meter, calls: Sequence[MeasuredCall], runs: Sequence[Any], count: int, cold: bool, tick: Tick
) -> list[list[Sample]]:
    """Samples by events; read after the last, so that the GPU never waits for the host to read."""
    pending: list[list[tuple[int, Any, Any]]] = [[] for _ in calls]
    events = iter(gpu.events(2 * count * len(calls)))
    for order in orders(len(calls), count):
        tick()
        for i in order:
            before_sample(gpu, calls[i], cold, len(calls) > 1)
            run = runs[i]
            first, second = next(events), next(events)
            at = gpu.now()
            gpu.record(first)
            run()
            gpu.record(second)
            pending[i].append((at, first, second))
    gpu.synchronize()
    return [
        [Sample(gpu.elapsed_ns(first, second) / call.batch, at) for at, first, second in taken]
        for call, taken in zip(calls, pending, strict=True)
    ]
