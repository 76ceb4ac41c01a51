"""What a rule is told, and what it says."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

Facts = Mapping[str, float]


@dataclass(frozen=True)
class Message:
    """One finding. ``speedup`` is the estimated local speed-up in percent, NaN where none is estimated."""

    rule: str
    section: str
    severity: str  # "OPT": something to gain, "INF": to know, "WRN": to beware
    text: str
    speedup: float = float("nan")


def messages(rule: str, section: str) -> Callable[..., Message]:
    """What makes the messages of one rule: ``say(severity, text, speedup)``."""

    def say(severity: str, text: str, speedup: float = float("nan")) -> Message:
        return Message(rule, section, severity, text[:1].upper() + text[1:], speedup)

    return say
