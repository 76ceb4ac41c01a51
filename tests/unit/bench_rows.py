"""Rows of benchmarks with known times, for tests."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from cuptiprof.bench import CounterValue, Interval, Measurement
from cuptiprof.bench.results.row import Failure, Row
from cuptiprof.stats.statistics import median_interval

ENVIRONMENT: dict[str, Any] = {"chip": "H100", "simulated": True, "driver_version": 13000, "commit": "c0ffee"}


def measurement(ns: float = 1000.0, *, noise: float = 0.01, seed: int = 0, n: int = 200, **fields: Any) -> Measurement:
    """Log-normal times around `ns` with a relative spread of `noise`."""
    samples = ns * np.exp(np.random.default_rng(seed).normal(0.0, noise, n)) if noise else np.full(n, ns)
    i = median_interval(samples, tick=0.0)
    interval = Interval(i.median, i.low, i.high, i.confidence)
    given = {"name": "f", "strategy": "kernel", "environment": dict(ENVIRONMENT), **fields}
    return Measurement(samples=samples, times=np.arange(n) / 1e3, interval=interval, **given)


def row(ns: float = 1000.0, *, benchmark: str = "gemm", params: Mapping[str, Any] | None = None, **more: Any) -> Row:
    return Row(benchmark, params or {}, measurement(ns, **more), source="s")


def failed(message: str = "ValueError: no", *, benchmark: str = "gemm", params: Mapping[str, Any] | None = None) -> Row:
    return Row(benchmark, params or {}, failure=Failure("error", message, "b.py:3"), source="s")


def fake_measure(calls: list[Mapping[str, Any]]) -> Callable[..., Measurement]:
    """What stands in for ``cuptiprof.bench``: calls the function once and notes what it was told."""

    def measure(function: Callable[[], object], **options: Any) -> Measurement:
        calls.append(options)
        result = function()
        ns = float(result) if isinstance(result, (int, float)) else 1000.0
        return measurement(ns, noise=0.0, n=20, name=options["name"], params=options["params"])

    return measure


def counters(*values: tuple[str, float, str]) -> tuple[CounterValue, ...]:
    return tuple(CounterValue(*v) for v in values)
