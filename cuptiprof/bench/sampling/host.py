"""Time on the host: until the call returns, until the GPU has finished too, or as the function itself measured it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import ClassVar

from cuptiprof.bench.sampling.strategy import MeasuredCall, Sample, Strategy, Tick, before_sample, orders, repeated
from cuptiprof.device.gpu import Meter
from cuptiprof.errors import BenchError

MIN_BATCH_NS = 100_000
"""Shorter calls are repeated between two readings of the clock until this is filled: the readings take some 50 ns, and the first calls
after the harness's own work, with its data in the caches, lose about 500 ns."""
MAX_BATCH_CALLS = 5000
MAX_LAUNCHING_CALLS = 50
"""of a call that gives the GPU work: with about a thousand launches in flight the next one waits"""


HOST_STEP_NS = 1.0


class Cpu(Strategy):
    """Host time until the call returns, with an idle GPU before it: what launching costs."""

    name: ClassVar[str] = "cpu"
    clock_step_ns: ClassVar[float | None] = HOST_STEP_NS
    needs_gpu_work: ClassVar[bool] = False
    can_be_cold: ClassVar[bool] = False
    times_work: ClassVar[bool] = False

    def prepare(self, gpu: Meter, call: MeasuredCall, estimate_ns: float, cold: bool) -> None:
        if call.setup is not None:
            return
        most = MAX_LAUNCHING_CALLS if call.launches else MAX_BATCH_CALLS
        alone = min(
            s.value for s in on_host(gpu, [call], 3, False, lambda: None, waits=False)[0]
        )  # the estimate has the wait in it
        call.batch = max(1, min(most, round(MIN_BATCH_NS / max(call.agree(alone), 1.0))))

    def rounds(
        self, gpu: Meter, calls: Sequence[MeasuredCall], count: int, cold: bool, tick: Tick
    ) -> list[list[Sample]]:
        return on_host(gpu, calls, count, cold, tick, waits=False)


class Wall(Strategy):
    """Host time until the GPU has finished what the call gave it: what a caller who waits sees."""

    name: ClassVar[str] = "wall"
    clock_step_ns: ClassVar[float | None] = HOST_STEP_NS
    needs_gpu_work: ClassVar[bool] = False

    def rounds(
        self, gpu: Meter, calls: Sequence[MeasuredCall], count: int, cold: bool, tick: Tick
    ) -> list[list[Sample]]:
        return on_host(gpu, calls, count, cold, tick, waits=True)


class Manual(Strategy):
    """The function returns its own time, ns: for work that is set up, timed and cleared away in one call.

    Or a mapping with its time as "ns" and other numbers, the same in each call: they come out in ``Measurement.reported``.
    """

    name: ClassVar[str] = "manual"
    needs_gpu_work: ClassVar[bool] = False

    def rounds(
        self, gpu: Meter, calls: Sequence[MeasuredCall], count: int, cold: bool, tick: Tick
    ) -> list[list[Sample]]:
        out: list[list[Sample]] = [[] for _ in calls]
        for order in orders(len(calls), count):
            tick()
            for i in order:
                before_sample(gpu, calls[i], cold, False)  # it sets up and clears away by itself, which may take long
                at = gpu.now()
                ns, reported = own_numbers(calls[i].name, calls[i].function())
                if out[i] and out[i][0].reported.keys() != reported.keys():
                    raise BenchError(f"{calls[i].name!r} does not report the same numbers in each call")
                out[i].append(Sample(ns, at, reported=reported))
        return out


def own_numbers(name: str, value: object) -> tuple[float, dict[str, float]]:
    """Time, ns, and the other numbers that a function returned.

    Raises:
        BenchError: it returned something else, or a number that is not finite.
    """
    given = dict(value) if isinstance(value, Mapping) else {"ns": value}
    numbers: dict[str, float] = {}
    for key, number in given.items():
        if isinstance(number, bool) or not isinstance(number, (int, float)):
            raise BenchError(
                f'{name!r} returned {type(number).__name__} as {key!r}: with strategy="manual" it returns its time in ns, '
                'or a mapping with its time as "ns" and other numbers'
            )
        if not math.isfinite(number):
            raise BenchError(f"{name!r} returned {number} as {key!r}, which is no time or amount")
        numbers[str(key)] = float(number)
    if "ns" not in numbers:
        raise BenchError(f'{name!r} returned a mapping without its time, "ns"')
    return numbers.pop("ns"), numbers


def on_host(
    gpu: Meter, calls: Sequence[MeasuredCall], count: int, cold: bool, tick: Tick, *, waits: bool
) -> list[list[Sample]]:
    """Samples by the host's clock. Nothing but the call (and the wait) stands between its readings."""
    runs = [c.function if c.batch == 1 else repeated(c.function, c.batch) for c in calls]
    out: list[list[Sample]] = [[] for _ in calls]
    now, synchronize = gpu.now, gpu.synchronize
    for order in orders(len(calls), count):
        tick()
        for i in order:
            before_sample(gpu, calls[i], cold, len(calls) > 1)
            synchronize()
            run = runs[i]
            if waits:
                start = now()
                run()
                synchronize()
                end = now()
            else:
                start = now()
                run()
                end = now()
            out[i].append(Sample((end - start) / calls[i].batch, start))
    synchronize()
    return out
