"""What advice is made of: suggestions, each with a place, a time, what to try."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Place:
    """Where: whatever of these is known, else "". ``share``: part of the time that is there, 0..1; ``before``: the time is
    that before the work there."""

    kernel: str = ""
    operator: str = ""
    module: str = ""
    line: str = ""
    region: str = ""
    step: str = ""
    call: str = ""
    share: float = 1.0
    before: bool = False


@dataclass(frozen=True)
class Suggestion:
    """One piece of advice.

    Attributes:
        rule: name of the rule. title: the same in a few words.
        place: where.
        time: ns of GPU time (of all GPUs together, as the wall time that shares are of) that it is about.
        saves: ns of them that it can save at most; 0: none that can be known.
        text: what was seen. try_: what to try.
    """

    rule: str
    title: str
    place: Place
    time: int
    saves: int
    text: str
    try_: str

    def made(self) -> Suggestion:
        return self


@dataclass(frozen=True)
class Candidate:
    """A suggestion of which only the times are known yet: many are not shown, and where they are takes long to find."""

    rule: str
    time: int
    saves: int
    made: Callable[[], Suggestion]


@dataclass(frozen=True)
class Advice:
    """``findings``: suggestions, what can save most first; ``count``: how many there are, those left out
    as well. ``whole``: wall time x GPUs, ns, or (``of_wall`` false) the time
    in which they worked. ``gpus`` that worked. ``notes``: what is not known, and what would tell."""

    findings: list[Suggestion]
    count: int
    whole: int
    gpus: int
    of_wall: bool
    notes: list[str] = field(default_factory=list)
