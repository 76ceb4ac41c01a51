"""What a workload is run under. Each is switched on and off again in the same process, one at a time: only one tool can
hold CUPTI."""

from __future__ import annotations

import contextlib
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.overhead.workloads import Region

COUNTER_METRICS = ["achieved_occupancy", "ipc", "dram_read_throughput"]
COUNTED_EVERY = 100
CONCURRENT_KERNEL = 10


def no_region(name: str) -> contextlib.AbstractContextManager[object]:
    return contextlib.nullcontext()


@dataclass
class Outcome:
    """What one use of a condition left: time from the stop call to its result (ns), records kept, losses."""

    result_ns: int = 0
    records: int | None = None
    losses: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Condition:
    """`start()` returns what steps open their regions with; `stop()` what came of it. `reason`: why it cannot be had here."""

    name: str
    group: str
    """baseline, ours, floor or peer"""
    start: Callable[[], Region]
    stop: Callable[[], Outcome]
    reason: str = ""


def missing(name: str, group: str, reason: str) -> Condition:
    """A row of the table with nothing but the reason."""
    return Condition(name, group, lambda: no_region, Outcome, reason)


def imported() -> Condition:
    """cuptiprof imported and nothing started: what all others are compared with. Regions are opened, and do nothing."""
    import cuptiprof

    return Condition("imported", "baseline", lambda: cuptiprof.region, Outcome)


class _Session:
    """One of our own sessions, started anew each time."""

    def __init__(self, device: str, regions: bool, options: dict[str, Any], finalize: bool = False) -> None:
        self._device, self._regions, self._options = device, regions, options
        self._finalize = finalize
        self._prof: Any = None

    def start(self) -> Region:
        import cuptiprof

        self._prof = cuptiprof.profile(device=self._device, **self._options)
        self._prof._follows_launches = self._regions
        self._prof.start()
        return cuptiprof.region

    def stop(self) -> Outcome:
        from cuptiprof.errors import SessionError

        began = time.perf_counter_ns()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that a filter selected nothing is for users, not for a table
            try:
                result = self._prof.detach(finalize=self._finalize)
            except SessionError:
                result = self._prof.result()  # CUPTI stays where the work made CUDA graphs
        took = time.perf_counter_ns() - began
        chosen = ("filter_rejected",)  # what the condition itself asks to leave out
        losses = {name: count for name, count in dict(result.losses).items() if count and name not in chosen}
        self._prof = None
        return Outcome(took, len(result.kernels), losses)


def ours(device: str, name: str, regions: bool = True, finalize: bool = False, **options: Any) -> Condition:
    session = _Session(device, regions, {"budget": "512 MB", **options}, finalize)
    return Condition(name, "ours", session.start, session.stop)


def our_conditions(device: str) -> list[Condition]:
    """From nothing switched on to everything; counters last."""
    from cuptiprof import schedule
    from cuptiprof.filter.kernel_filter import KernelFilter

    kernel, api = ["kernel"], ["kernel", "runtime", "driver"]
    return [
        ours(device, "armed", schedule=schedule(wait=1 << 30, warmup=0, active=1)),
        ours(device, "kernels", regions=False, activities=kernel),
        ours(device, "kernels + regions", activities=kernel),
        ours(device, "kernels + API", regions=False, activities=api),
        ours(device, "kernels + API + regions", activities=api),
        ours(device, "default"),
        ours(device, "counters on 1 %", activities=kernel, metrics=COUNTER_METRICS, kernels=KernelFilter(every=COUNTED_EVERY)),
        ours(device, "PM sampling", activities=kernel, metrics=COUNTER_METRICS, strategy="sample"),
        ours(device, "default, then detach(finalize=True)", finalize=True),
    ]  # fmt: skip


def floors(library: Path | str, libcupti: str) -> list[Condition]:
    """The least there can be, in C: a collector that throws its buffers away; then with each way of joining regions.

    `library`: see ``native.build``.
    """
    names = ("bare collector (C)", "bare + regions by callback (C)", "bare + regions by external ID (C)")
    if isinstance(library, str):
        return [missing(name, "floor", library) for name in names]
    from benchmarks.overhead.native import BareCollector, Joining

    def floor(name: str, join: Joining | None) -> Condition:
        collector = BareCollector(library, libcupti, CONCURRENT_KERNEL)

        def start() -> Region:
            collector.start()
            if join is None:
                return no_region
            join.start()
            return join.region

        def stop() -> Outcome:
            began = time.perf_counter_ns()
            if join is not None:
                join.stop()
            collector.stop()
            return Outcome(time.perf_counter_ns() - began)

        return Condition(name, "floor", start, stop)

    ways = (None, *(Joining(library, libcupti, way) for way in (Joining.BY_CALLBACK, Joining.BY_EXTERNAL_ID)))
    return [floor(name, way) for name, way in zip(names, ways, strict=True)]
