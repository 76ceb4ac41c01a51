"""What several options read their values with."""

from __future__ import annotations

import argparse
import re
from decimal import Decimal


def seconds(text: str) -> float:
    """A positive time in seconds."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 < value < 1e7:
        raise argparse.ArgumentTypeError(f"{text!r} is no positive number of seconds")
    return value


def count(text: str) -> int:
    """A number of rows or launches: 0 or more."""
    if not (text.isascii() and text.isdecimal() and len(text) < 19):
        raise argparse.ArgumentTypeError(f"{text!r} is no number from 0 on")
    return int(text)


def nanoseconds(text: str) -> int:
    """A positive time with its unit, ``20us``, in ns."""
    match = re.fullmatch(r"(\d{1,12}(?:\.\d{1,9})?)(ns|us|ms|s)", text, re.ASCII)
    value = int(Decimal(match.group(1)) * _NS[match.group(2)]) if match else 0
    if not value:
        raise argparse.ArgumentTypeError(f"{text!r} is no positive time: write 20us, 1ms, 0.5s")
    return value


_NS = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9}


def percent(text: str) -> float:
    """A percentage, ``5%``, as a fraction."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*%", text)
    if match is None:
        raise argparse.ArgumentTypeError(f"{text!r} is no percentage: write 5%")
    return float(match.group(1)) / 100
