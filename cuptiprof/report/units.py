"""Numbers as nvprof prints them: five significant digits, a unit right behind."""

from __future__ import annotations

from typing import Any

from cuptiprof.errors import ResultError
from cuptiprof.report.model import Kind

_TIME = {"s": 1e9, "ms": 1e6, "us": 1e3, "ns": 1.0}
UNITS = ("auto", *_TIME)


def five_digits(value: float) -> str:
    """Five significant digits, trailing zeros kept ("15.090", "230.07")."""
    whole = len(str(int(abs(value))))
    return f"{value:.{max(0, 5 - whole)}f}"


def time_text(ns: float, unit: str = "auto") -> str:
    """ "24.417ms", "928ns"; with a fixed `unit` the number alone in that unit and the unit behind it.

    Raises:
        ResultError: an unknown unit.
    """
    if unit not in UNITS:
        raise ResultError(f"unknown unit {unit!r}", hint=f"one of: {', '.join(UNITS)}")
    if unit == "auto":
        unit = next((u for u, factor in _TIME.items() if abs(ns) >= factor), "ns")
    if unit == "ns":
        return f"{ns:.0f}ns"
    return five_digits(ns / _TIME[unit]) + unit


def bytes_text(value: float) -> str:
    """Powers of 1024 under nvprof's names: "12.250MB"."""
    for unit, factor in (("GB", 1 << 30), ("MB", 1 << 20), ("KB", 1 << 10)):
        if value >= factor:
            return five_digits(value / factor) + unit
    return f"{value:.0f}B"


def shown(value: Any, kind: Kind, unit: str = "auto") -> str:
    """One value for people."""
    if value is None:
        return "-"
    if kind in ("time", "start"):
        return time_text(float(value), unit)
    if kind == "percent":
        return f"{value:.2f}%"
    if kind == "count":
        return f"{value:d}"
    if kind == "bytes":
        return bytes_text(float(value))
    if kind == "throughput":
        return bytes_text(float(value)) + "/s"
    if kind == "dims":
        return "({} {} {})".format(*value)
    if kind == "number":
        return f"{value:.4g}"
    return str(value)
