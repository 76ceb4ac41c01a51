"""Counters of this process and its machine, out of /proc."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from pathlib import Path

_PAGE = os.sysconf("SC_PAGE_SIZE")


class HostCounters:
    """What the process and the machine do; rates are since the reading before, so that the first has none.

    Attributes:
        missed: readings that failed.
    """

    def __init__(self, proc: Path = Path("/proc")) -> None:
        self._proc = proc
        self._before: dict[str, tuple[float, float]] = {}  # what was counted, of how much
        self.missed = 0

    def read(self, now: int) -> Iterator[tuple[str, float]]:
        """Counters and values at `now` (ns)."""
        for way in (self._process, self._machine, self._memory, self._disk):
            try:
                yield from way(now / 1e9)
            except (OSError, ValueError, IndexError, KeyError):
                self.missed += 1

    def _rate(self, name: str, counted: float, of: float, scale: float = 1.0) -> Iterator[tuple[str, float]]:
        before, of_before = self._before.get(name, (counted, of))
        self._before[name] = counted, of
        if of > of_before and counted >= before:
            yield name, scale * (counted - before) / (of - of_before)

    def _process(self, now: float) -> Iterator[tuple[str, float]]:
        used = resource.getrusage(resource.RUSAGE_SELF)
        yield from self._rate("process_cpu", used.ru_utime + used.ru_stime, now, 100.0)
        yield from self._rate("context_switches", used.ru_nvcsw + used.ru_nivcsw, now)

    def _machine(self, now: float) -> Iterator[tuple[str, float]]:
        del now  # the kernel's own ticks say how much there was
        user, nice, system, idle, waiting, *rest = map(int, self._text("stat").split("\n", 1)[0].split()[1:9])
        busy = user + nice + system + sum(rest)
        yield from self._rate("machine_cpu", busy, busy + idle + waiting, 100.0)

    def _memory(self, now: float) -> Iterator[tuple[str, float]]:
        del now
        yield "resident", float(int(self._text("self/statm").split()[1]) * _PAGE)

    def _disk(self, now: float) -> Iterator[tuple[str, float]]:
        said = dict(line.split(": ") for line in self._text("self/io").splitlines())
        yield from self._rate("disk_read", int(said["read_bytes"]), now)
        yield from self._rate("disk_written", int(said["write_bytes"]), now)

    def _text(self, name: str) -> str:
        return (self._proc / name).read_text()
