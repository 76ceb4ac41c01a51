"""What the recorder knows of the program a few times a second: what triggers look at."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from cuptiprof.data.system_counters import HOST

if TYPE_CHECKING:
    from cuptiprof.watch.live_figures import LiveFigures

NAN = float("nan")
Reading = tuple[int, str, float]
"""device, name of the counter, value in its unit; the latest of each."""


@dataclass(frozen=True)
class RecorderFigures(Mapping[str, float]):
    """As a mapping what :class:`~cuptiprof.flight_recorder.triggers.When` is called with.

    Attributes:
        now: s of a clock that only goes forward.
        known: ``launches_per_second``, ``step_seconds``, ``lost``, ``bytes``.
        live: the session's sums, once a second; None: not asked for, or not all of that second was observed.
        system: readings of the system, latest of each counter and device.
    """

    now: float
    known: Mapping[str, float]
    live: LiveFigures | None = None
    system: Callable[[], list[Reading]] = field(default=list)

    def __getitem__(self, name: str) -> float:
        return self.known[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.known)

    def __len__(self) -> int:
        return len(self.known)

    def gpu_busy(self, device: str) -> list[float]:
        """Percent of the last second, of the GPU of that number; "": of each."""
        gpus = self.live.gpus if self.live is not None else ()
        return [gpu.recent_pct for gpu in gpus if device in ("", str(gpu.device))]

    def kernel_time(self, name: str) -> list[float]:
        """Mean duration in the last second, s, of each kernel whose name has `name` in it, or matches where that is a glob."""
        pattern = name if any(c in name for c in "*?[") else f"*{name}*"
        kernels = self.live.kernels if self.live is not None else ()
        return [k.recent_ns / k.recent_count / 1e9 for k in kernels if k.recent_count and fnmatchcase(k.name, pattern)]

    def memory(self) -> list[float]:
        """Device memory that was allocated and not released, bytes."""
        known = self.live.memory_bytes if self.live is not None else None
        return [] if known is None else [float(known)]

    def system_counter(self, name: str, device: str) -> list[float]:
        """The latest reading, of the GPU of that number; "": of each."""
        return [
            value
            for of, counter, value in self.system()
            if counter == name and (device == "" or of == HOST or device == str(of))
        ]


def extreme(values: list[float], *, highest: bool) -> float:
    """The highest or lowest of those that are known; NaN: none is."""
    there = [value for value in values if not math.isnan(value)]
    return (max(there) if highest else min(there)) if there else NAN
