"""What several options read their values with."""

from __future__ import annotations

import argparse
import re

from cuptiprof.text.time_lengths import read_time

_MOST_NUMBERS = 1_000_000


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


def address_and_port(text: str) -> str:
    """``9464`` or ``0.0.0.0:9464`` or ``[::1]:9464``, as ADDRESS:PORT: without an address the loopback one, and none in brackets."""
    match = re.fullmatch(r"(?:(?P<address>[^:\[\]]+|\[[0-9A-Fa-f:.]+\]):)?(?P<port>[0-9]{1,5})", text)
    if match is None or int(match["port"]) >= 1 << 16:
        raise argparse.ArgumentTypeError(f"{text!r} is no port: write 9464, or 0.0.0.0:9464")
    return f"{(match['address'] or '127.0.0.1').strip('[]')}:{match['port']}"


def numbers(text: str) -> list[int]:
    """Whole numbers and ranges of them, ``0,3-5``, in ascending order: at most a million."""
    found: set[int] = set()
    for piece in text.split(","):
        match = re.fullmatch(r"([0-9]{1,9})(?:-([0-9]{1,9}))?", piece.strip())
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
        if last < first or last - first >= _MOST_NUMBERS:
            raise argparse.ArgumentTypeError(f"{text[:80]!r}: write numbers and ranges, such as 0,3-5")
        found.update(range(first, last + 1))
    return sorted(found)


def number_range(text: str) -> tuple[int, int]:
    """The first and the last number of a range, ``10-12``, or of one number."""
    match = re.fullmatch(r"([0-9]{1,9})(?:-([0-9]{1,9}))?", text.strip())
    if match is None or int(match[2] or match[1]) < int(match[1]):
        raise argparse.ArgumentTypeError(f"{text[:80]!r}: write one number, or a range such as 10-12")
    return int(match[1]), int(match[2] or match[1])


def nanoseconds(text: str) -> int:
    """A positive time with its unit, ``20us``, in ns."""
    value = read_time(text) if not text.strip()[-1:].isdigit() else None
    if not value:
        raise argparse.ArgumentTypeError(f"{text!r} is no positive time: write 20us, 1ms, 0.5s")
    return value


def percent(text: str) -> float:
    """A percentage, ``5%``, as a fraction."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*%", text)
    if match is None:
        raise argparse.ArgumentTypeError(f"{text!r} is no percentage: write 5%")
    return float(match.group(1)) / 100
