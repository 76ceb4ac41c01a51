"""What the user asked to count, checked as far as it can be without a device."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from cuptiprof.counters.controls import CACHES, CLOCKS
from cuptiprof.data.enums import STRATEGIES
from cuptiprof.errors import MetricError
from cuptiprof.text.time_lengths import read_time

CHOICES = ("auto", *(name for name in STRATEGIES.values() if name != "application"))
MIN_INTERVAL_NS = 1_000
MAX_INTERVAL_NS = 10_000_000_000
MAX_LEVELS = 32
"""Of nested regions: deeper ones the native part does not see."""


@dataclass(frozen=True)
class CounterRequest:
    """The counter keywords of ``profile``, which says what they mean, in the form they are used in.

    Attributes:
        metrics, events, section: names, one each; empty: none were asked for.
        interval_ns: ``sampling_interval``.
    """

    metrics: tuple[str, ...] = ()
    events: tuple[str, ...] = ()
    set: str | None = None
    section: tuple[str, ...] = ()
    strategy: str = "auto"
    interval_ns: int = 100_000
    repeatable: bool = False
    region_levels: int = 1
    communicating: bool = False
    cache_control: str | None = None  # None: ncu's default where kernels are replayed
    clock_control: str | None = None

    def __bool__(self) -> bool:
        """Whether anything is to be counted."""
        return bool(self.metrics or self.events or self.set or self.section)


def make_request(
    *,
    metrics: str | Iterable[str] | None,
    events: str | Iterable[str] | None,
    set: str | None,
    section: str | Iterable[str] | None,
    strategy: str,
    sampling_interval: int | float | str,
    repeatable: bool,
    region_levels: int,
    communicating: bool,
    cache_control: str | None = None,
    clock_control: str | None = None,
) -> CounterRequest:
    """The request that these keywords make.

    Raises:
        MetricError: an unknown strategy, cache or clock control, or an interval or a number of levels out of range.
    """
    if strategy not in CHOICES:
        raise MetricError(f"unknown strategy {strategy!r}", hint=f"one of: {', '.join(CHOICES)}")
    for option, value, known in (("cache_control", cache_control, CACHES), ("clock_control", clock_control, CLOCKS)):
        if value is not None and value not in known:
            raise MetricError(f"unknown {option} {value!r}", hint=f"one of: {', '.join(known)}")
    if not 1 <= region_levels <= MAX_LEVELS:
        raise MetricError(
            f"region_levels={region_levels} is out of range", hint=f"1 (outermost regions) to {MAX_LEVELS}"
        )
    if region_levels > 1 and not repeatable:
        raise MetricError(
            "nested regions are counted one level at a time, so the work must run several times",
            hint="repeatable=True and prof.repeat(function), or region_levels=1",
        )
    return CounterRequest(
        _names(metrics),
        _names(events),
        set,
        _names(section),
        strategy,
        _parse_interval(sampling_interval),
        repeatable,
        region_levels,
        communicating,
        cache_control,
        clock_control,
    )


def _names(given: str | Iterable[str] | None) -> tuple[str, ...]:
    if given is None:
        return ()
    parts = [given] if isinstance(given, str) else list(given)
    if not all(isinstance(p, str) for p in parts):
        raise MetricError("metrics are named by text", hint='metrics=["ipc", "dram_read_throughput"]')
    return tuple(name.strip() for p in parts for name in p.split(",") if name.strip())


def _parse_interval(interval: int | float | str) -> int:
    """Nanoseconds from a number (ns) or a text such as "100us", "1 ms", "2.5us".

    Raises:
        MetricError: not an interval between 1 us and 10 s.
    """
    ns = read_time(interval) if isinstance(interval, str) else float(interval)
    if ns is None:
        raise MetricError(f"cannot read {interval!r} as a sampling interval", hint='for example "100us" or "1ms"')
    if not MIN_INTERVAL_NS <= ns <= MAX_INTERVAL_NS:
        raise MetricError(f"a sampling interval of {interval!r} is out of range", hint="1us to 10s; 100us is usual")
    return int(ns)
