"""Counter values as nvprof prints them: 2.8092GB/s, 48.97%, Mid (5), six decimals for ratios, whole counts."""

from __future__ import annotations

import functools
import math
import re
from typing import Literal

from cuptiprof.text.units import format_byte_rate, format_flop_rate, format_percent, format_time

Form = Literal["percent", "level", "byte_rate", "flop_rate", "time", "seconds", "frequency", "ratio", "count"]

_BYTE_RATES = frozenset({"byte/s", "bytes/s", "byte/second", "bytes/second", "b/s"})
# perfworks has cycles of each clock: gpc_cycle/s, dram_cycle/s.
_FREQUENCY = re.compile(r"hz|1/s(econd)?|(\w+_)?cycles?/s(econd)?", re.ASCII)
_FLOP_RATES = frozenset({"flop/s", "flop/second"})
_NANOSECONDS = frozenset({"ns", "nsecond", "nseconds", "nanosecond", "nanoseconds"})
_SECONDS = frozenset({"s", "second", "seconds"})
_LEVELS = ((9.5, "Max"), (6.5, "High"), (3.5, "Mid"), (0.5, "Low"))
_PREFIXES = ("", "K", "M", "G", "T", "P", "E")
_TOO_LARGE = 1e21  # past it digits mean nothing, and a damaged file shall not fill a line with them


@functools.lru_cache(maxsize=4096)
def form_of(unit: str) -> Form:
    """How values of a unit are written; an unknown unit without a slash is a count."""
    text = unit.strip().lower()
    if text.startswith("%") or text in ("percent", "pct"):
        return "percent"
    if text.startswith("level"):
        return "level"
    if text in _BYTE_RATES:
        return "byte_rate"
    if text in _FLOP_RATES:
        return "flop_rate"
    if text in _NANOSECONDS:
        return "time"
    if text in _SECONDS:
        return "seconds"
    if _FREQUENCY.fullmatch(text):
        return "frequency"
    if not text or "/" in text or text.startswith("ratio") or text in ("warp", "warps"):
        return "ratio"
    return "count"


def infer_unit(metric: str, unit: str) -> str:
    """``unit``, or where the plan gave none what the suffix of a perfworks name says."""
    if unit:
        return unit
    if metric.endswith(".pct") or ".pct_of_peak" in metric:
        return "%"
    if metric.endswith(".per_second") and "bytes" in metric:
        return "byte/s"
    if metric.endswith((".sum", ".min", ".max")):
        return "count"
    return ""


def format_metric(value: float, unit: str) -> str:
    """A value with its unit, as nvprof's tables have it; counts and ratios stand alone."""
    number, scaled = scale_metric(value, unit)
    return number if form_of(unit) in ("ratio", "count", "level") else number + scaled


def scale_metric(value: float, unit: str) -> tuple[str, str]:
    """A value as (number, unit), scaled for reading: (696.98, us), (2.8092, GB/s), (0.500000, instruction/cycle)."""
    if not abs(value) < _TOO_LARGE:
        return f"{value:.6g}", unit
    match form_of(unit):
        case "percent":
            return format_percent(value)[:-1], "%"
        case "level":
            return format_level(value), "level"
        case "byte_rate":
            return _signed_split(format_byte_rate, value)
        case "flop_rate":
            return _signed_split(format_flop_rate, value)
        case "time":
            return _signed_split(format_time, value)
        case "seconds":
            return _signed_split(format_time, value * 1e9)
        case "frequency":
            return _prefixed(value, "Hz")
        case "ratio":
            return f"{value:.6f}", unit
        case "count":
            # A mean over launches need not be whole; small ones would lose what they say.
            return (f"{value:.0f}" if value == round(value) or abs(value) >= 100 else f"{value:.6f}"), unit


def format_level(value: float) -> str:
    """nvprof's utilisation levels 0..10: Idle (0), Low (1..3), Mid (4..6), High (7..9), Max (10)."""
    if not 0 <= value <= 10.5:
        return f"{value:.6g}"
    number = math.floor(value + 0.5)
    return f"{next((name for least, name in _LEVELS if number >= least), 'Idle')} ({number})"


def _signed_split(formatter: object, value: float) -> tuple[str, str]:
    assert callable(formatter)
    text = str(formatter(abs(value)))
    digits = len(text) - len(text.lstrip("0123456789."))
    return ("-" if value < 0 else "") + text[:digits], text[digits:]


def _prefixed(value: float, unit: str) -> tuple[str, str]:
    sign, value = ("-", -value) if value < 0 else ("", value)
    step = 0
    while value >= 1000 and step < len(_PREFIXES) - 1:
        value, step = value / 1000, step + 1
    return f"{sign}{value:.4g}", f"{_PREFIXES[step]}{unit}"
