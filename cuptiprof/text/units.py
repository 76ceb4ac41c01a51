"""Numbers as nvprof prints them: auto-scaled units, five significant digits (six for seconds)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

from cuptiprof.errors import ResultError

TimeUnit = Literal["auto", "s", "ms", "us", "ns"]
UNITS: tuple[TimeUnit, ...] = ("auto", "s", "ms", "us", "ns")

# Unit, its length in ns, significant digits of the auto-scaled form.
_TIME_SCALE: tuple[tuple[TimeUnit, int, int], ...] = (
    ("ns", 1, 0),
    ("us", 1_000, 5),
    ("ms", 1_000_000, 5),
    ("s", 1_000_000_000, 6),
)
_BYTE_UNITS = ("B", "KB", "MB", "GB", "TB", "PB", "EB")
_DECIMAL_PREFIXES = ("", "K", "M", "G", "T", "P", "E", "Z")


def ns_per(unit: TimeUnit) -> int:
    """Nanoseconds in one ``unit`` ("s", "ms", "us" or "ns")."""
    return {name: scale for name, scale, _ in _TIME_SCALE}[unit]


def _significant(value: float, digits: int) -> str:
    """``value`` (0 or 1 <= value) with ``digits`` significant digits, trailing zeros kept."""
    whole = 1 if value < 1 else math.floor(math.log10(value)) + 1
    return f"{value:.{max(digits - whole, 0)}f}"


def format_time(ns: float, unit: TimeUnit = "auto") -> str:
    """``ns`` with its unit: 928ns, 696.98us, 24.417ms, 15.0900s.

    With a fixed unit all digits down to the nanosecond are given, so that a column lines up and adds up.
    """
    sign, ns = ("-", -ns) if ns < 0 else ("", ns)
    ns = round(ns)  # the clock's resolution; nvprof's averages are whole nanoseconds too
    if unit != "auto":
        scale = ns_per(unit)
        decimals = len(str(scale)) - 1
        whole, rest = divmod(ns, scale)
        return f"{sign}{whole}.{rest:0{decimals}d}{unit}" if decimals else f"{sign}{whole}{unit}"
    if ns < 1_000:
        return f"{sign}{ns}ns"
    for name, scale, digits in _TIME_SCALE[1:]:
        text = _significant(ns / scale, digits)
        if name == "s" or float(text) < 1_000:  # 999.999us rounds to 1000.0us: say 1.0000ms
            return f"{sign}{_significant(float(text), digits)}{name}"
    raise AssertionError("the last unit takes every value")


def format_bytes(value: float) -> str:
    """nvprof's sizes: 4B, 400.00KB, 1.0000MB (1 KB = 1024 bytes, as there)."""
    if value < 0:
        return f"-{format_bytes(-value)}"
    if value < 1024:
        return f"{value:.0f}B"
    return _scaled(value, 1024, _BYTE_UNITS)


def format_byte_rate(value: float) -> str:
    """Bytes a second in powers of 1000, as data sheets, ncu and the peaks of chips have them: 2.8092GB/s."""
    return f"{_scaled(value, 1000, _BYTE_UNITS)}/s"


def format_flop(value: float) -> str:
    """Operations with a decimal prefix: 1.2000GFLOP."""
    return _scaled(value, 1000, tuple(f"{prefix}FLOP" for prefix in _DECIMAL_PREFIXES))


def format_flop_rate(value: float) -> str:
    """Operations a second with a decimal prefix: 312.00TFLOP/s."""
    return f"{format_flop(value)}/s"


def format_energy(joules: float) -> str:
    """Energy with a decimal prefix: 60.000mJ."""
    return _scaled(joules * 1e9, 1000, ("nJ", "uJ", "mJ", "J", "kJ"))


def _scaled(value: float, step: int, units: Sequence[str]) -> str:
    for unit in units[:-1]:
        text = _significant(value, 5)
        if float(text) < step:
            return f"{text}{unit}"
        value /= step
    return f"{_significant(value, 5)}{units[-1]}"


def format_percent(value: float) -> str:
    """Two decimals: 48.97%."""
    return f"{value:.2f}%"


def is_missing(value: object) -> bool:
    """None and NaN stand for "no value"."""
    return value is None or (isinstance(value, float) and math.isnan(value))


def check_time_unit(unit: str) -> TimeUnit:
    """``unit`` if it is one.

    Raises:
        ResultError: it is not.
    """
    if unit not in UNITS:
        raise ResultError(f"unknown unit {unit!r}", hint=f"one of: {', '.join(UNITS)}")
    return unit
