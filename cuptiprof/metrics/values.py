"""Metric values as nvprof prints them."""

from __future__ import annotations

import math

from cuptiprof.metrics.metric import Metric
from cuptiprof.text.units import format_byte_rate, format_flop_rate, format_percent

MISSING = "-"


def format_value(metric: Metric, value: float) -> str:
    """``value`` in the manner of nvprof: 1024, 0.496372, 82.31%, 2.8092GB/s (1 GB = 10**9 bytes), Mid (5).

    Args:
        metric: gives the kind and, for rates, the unit.
        value: in ``metric.unit``; NaN is shown as "-".
    """
    return format_kind(metric.kind, metric.unit, value)


def format_kind(kind: str, unit: str, value: float) -> str:
    """As :func:`format_value` from a kind and a unit as texts, such as a saved run has; an unknown kind is a "ratio"."""
    value = float(value)
    if math.isnan(value):
        return MISSING
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    match kind:
        case "count":
            return str(round(value))
        case "percent":
            return format_percent(value)
        case "throughput":
            return format_byte_rate(value)
        case "rate":
            return format_flop_rate(value) if unit == "flop/s" else f"{value:.6g} {unit}"
        case "utilization":
            return _level(value)
        case _:
            return f"{value:.6f}"


def _level(value: float) -> str:
    """CUPTI's levels of utilisation: 0 idle, 1 to 3 low, 4 to 6 mid, 7 to 9 high, 10 max."""
    level = min(max(round(value), 0), 10)
    name = "Idle" if level == 0 else "Low" if level < 4 else "Mid" if level < 7 else "High" if level < 10 else "Max"
    return f"{name} ({level})"
