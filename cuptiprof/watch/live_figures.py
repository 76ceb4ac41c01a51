"""The numbers of a session that runs: what it has collected so far, and in the last second or so."""

from __future__ import annotations

import os
import sys
import time
from dataclasses import dataclass
from typing import Any

import msgspec

from cuptiprof import _core
from cuptiprof.data.enums import MEMCPY_KINDS
from cuptiprof.data.result import Losses
from cuptiprof.text.names import display_name, printable

MOST_NAMES = 50
"""Kernels and regions that are told of: those with the longest GPU times."""
_LONGEST_NAME = 500
_LONGEST_PROGRAM = 200


class LiveSum(msgspec.Struct, frozen=True):
    """Work of one name: kernels, kernels launched in a region, copies in one direction.

    Attributes:
        count, bytes, ns: number, size and GPU time of what came since the start.
        recent_count, recent_bytes, recent_ns: the same, of what came since the numbers before these.
    """

    name: str
    count: int
    bytes: int
    ns: int
    recent_count: int
    recent_bytes: int
    recent_ns: int


class LiveGpu(msgspec.Struct, frozen=True):
    """How busy a GPU is, percent of the time in which a kernel, copy or set ran: lately, and since the start."""

    device: int
    recent_pct: float
    pct: float


class LiveFigures(msgspec.Struct, frozen=True):
    """What ``profile(on_live=...)`` is called with, and ``cuptiprof top`` shows.

    Work is told of when its record comes: some 0.3 s after its end, so that of a kernel that takes seconds nothing is seen until it ends.

    Attributes:
        pid, program: whose session it is.
        device: as the session was asked for it ("cuda", "sim").
        simulated: on the stand-in.
        state: idle, armed, running, paused or stopped.
        elapsed_s: since the start; interval_s: since the numbers before these.
        gpus: of each GPU on which work ran.
        launches, recent_launches: kernel launches seen.
        kernels, regions: the first ``MOST_NAMES`` by GPU time; a region's are those launched in it and in none inside of it.
        kernel_names, region_names: how many there are.
        copies, sets: memory copies by direction ("HtoD"), memory sets.
        memory_bytes: device memory that was allocated and not released; None: the activity "memory" is not collected, or nothing came.
        kept_bytes, budget_bytes: memory of what is kept, of the session's budget.
        losses: those that are losses, other than 0.
        missed: rows that are in no sum here (the budget was too small to look at them).
    """

    pid: int
    program: str
    device: str
    simulated: bool
    state: str
    elapsed_s: float
    interval_s: float
    gpus: tuple[LiveGpu, ...]
    launches: int
    recent_launches: int
    kernels: tuple[LiveSum, ...]
    regions: tuple[LiveSum, ...]
    kernel_names: int
    region_names: int
    copies: tuple[LiveSum, ...]
    sets: tuple[LiveSum, ...]
    memory_bytes: int | None
    kept_bytes: int
    budget_bytes: int
    losses: dict[str, int]
    missed: int


@dataclass(frozen=True)
class LiveSubject:
    """What a session says of itself: device as it was asked for, whether it is simulated, bytes it may keep."""

    device: str
    simulated: bool
    budget_bytes: int


class LiveSampler:
    """Asks a native session that was made with ``live=True``. One thread at a time."""

    def __init__(self, session: _core.Session, subject: LiveSubject) -> None:
        self._session = session
        self._subject = subject
        self._began = self._before = time.monotonic()
        self._launches = 0
        self._busy: dict[int, int] = {}

    def begin_interval(self) -> None:
        """What came until now is not recent."""
        self._figures(0)

    def sample(self) -> LiveFigures:
        """What there is now; the next interval begins."""
        return self._figures(MOST_NAMES)

    def _figures(self, most: int) -> LiveFigures:
        session = self._session
        sums = session.live_sums(most)
        counts = session.counts()
        now = time.monotonic()
        interval, elapsed = max(now - self._before, 1e-3), max(now - self._began, 1e-3)
        figures = LiveFigures(
            pid=os.getpid(),
            program=_program(),
            device=self._subject.device,
            simulated=self._subject.simulated,
            state=session.state,
            elapsed_s=elapsed,
            interval_s=interval,
            gpus=tuple(
                LiveGpu(device, _percent(ns - self._busy.get(device, 0), interval), _percent(ns, elapsed))
                for device, ns in sums["busy_ns"].items()
            ),
            launches=counts["launches"],
            recent_launches=max(counts["launches"] - self._launches, 0),
            kernels=tuple(_sum(_shown(display_name(name)), *of) for name, *of in sums["kernels"]),
            regions=tuple(_sum(_shown(name), *of) for name, *of in sums["regions"]),
            kernel_names=sums["kernel_names"],
            region_names=sums["region_names"],
            copies=tuple(_sum(MEMCPY_KINDS.get(kind, "Unknown"), *of) for kind, *of in sums["copies"]),
            sets=(_sum("set", *sums["sets"]),) if sums["sets"][0][0] else (),
            memory_bytes=sums["allocated"] if sums["allocations"] else None,
            kept_bytes=counts["live_bytes"],
            budget_bytes=self._subject.budget_bytes,
            losses={name: n for name, n in session.losses() if n and name not in Losses.NOT_A_LOSS},
            missed=sums["missed"],
        )
        self._before, self._launches, self._busy = now, counts["launches"], sums["busy_ns"]
        return figures


def _sum(name: str, of_all: tuple[int, int, int], of_recent: tuple[int, int, int]) -> LiveSum:
    return LiveSum(name, *of_all, *of_recent)


def _percent(ns: int, seconds: float) -> float:
    """Records that came late can be of more than the interval."""
    return min(100 * ns / (1e9 * seconds), 100.0)


def _shown(name: str) -> str:
    return printable(name[:_LONGEST_NAME])


def _program() -> str:
    """As it was started; a script that is run has its own ``sys.argv``."""
    arguments: list[Any] = list(getattr(sys, "argv", ()))
    words = [os.path.basename(str(arguments[0])), *map(str, arguments[1:])] if arguments else []
    return printable(" ".join(words)[:_LONGEST_PROGRAM])
