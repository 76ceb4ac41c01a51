"""Ways of measuring a call. Each is an object; its name is what ``strategy=`` takes."""

from __future__ import annotations

from cuptiprof.bench.sampling.event import Event, Graph
from cuptiprof.bench.sampling.host import Cpu, Manual, Wall
from cuptiprof.bench.sampling.kernel import Kernel
from cuptiprof.bench.sampling.strategy import MeasuredCall, Sample, Strategy
from cuptiprof.errors import BenchError
from cuptiprof.text.nearest import did_you_mean

STRATEGIES: dict[str, type[Strategy]] = {s.name: s for s in (Kernel, Event, Graph, Cpu, Wall, Manual)}


def make_strategy(given: str | Strategy) -> Strategy:
    """A strategy by its name, or the object itself.

    Raises:
        BenchError: unknown.
    """
    if isinstance(given, Strategy):
        return given
    if not isinstance(given, str) or given not in STRATEGIES:
        guess = did_you_mean(given, STRATEGIES) if isinstance(given, str) else ""
        raise BenchError(f"unknown strategy {given!r}{guess}", hint=f"one of: {', '.join(STRATEGIES)}")
    return STRATEGIES[given]()


__all__ = [
    "STRATEGIES",
    "Cpu",
    "Event",
    "Graph",
    "Kernel",
    "Manual",
    "MeasuredCall",
    "Sample",
    "Strategy",
    "Wall",
    "make_strategy",
]
