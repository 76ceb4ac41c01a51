"""Lengths of time as users write them."""

from __future__ import annotations

import re
from decimal import Decimal

_NS = {"ns": 1, "us": 10**3, "µs": 10**3, "ms": 10**6, "s": 10**9}


def read_time(text: str) -> int | None:
    """ns of "20us", "1 ms", "2.5us", "0.5s"; of a number alone, which is ns. None: it is none of these."""
    match = re.fullmatch(r"\s*(\d{1,12}(?:\.\d{1,9})?)\s*(ns|us|µs|ms|s)?\s*", text, re.ASCII)
    return int(Decimal(match.group(1)) * _NS[match.group(2) or "ns"]) if match else None
