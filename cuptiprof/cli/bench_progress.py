"""How far a sweep is: a bar with the time left on a terminal, else a line a point on stderr."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Any

from cuptiprof.bench.results.row import Row
from cuptiprof.text.names import printable
from cuptiprof.text.units import format_time


class Progress:
    """Use as a context manager; told of each point as it begins and ends."""

    def __init__(self, total: int, of: str = "") -> None:
        """`of`: what the points are of, "process 2 of 5: "; each line begins with it."""
        self.total = total
        self._of = of
        self.done = 0
        self._began = time.monotonic()
        self._bar: Any = None

    def __enter__(self) -> Progress:
        if sys.stderr.isatty() and self.total:
            self._bar = _make_bar()
            self._task = self._bar.add_task("", total=self.total)
            self._bar.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        if self._bar is not None:
            self._bar.stop()

    def begins(self, title: str) -> None:
        if self._bar is not None:
            self._bar.update(self._task, description=printable(f"{self._of}{title}")[:60])

    def ended(self, row: Row) -> None:
        self.done += 1
        line = describe(row)
        if self._bar is not None:
            from rich.text import Text

            self._bar.console.print(Text(f"{self._of}{line}", style="red" if row.failed else ""))
            self._bar.update(self._task, completed=self.done)
            return
        left = (time.monotonic() - self._began) / self.done * (self.total - self.done)
        print(
            f"{self._of}[{self.done}/{self.total}] {line}" + (f"  ({clock(left)} left)" if left else ""),
            file=sys.stderr,
            flush=True,
        )


def describe(row: Row) -> str:
    """A point in one line."""
    if row.measurement is None:
        return printable(f"{row.title}: {'FAILED, ' if row.failed else ''}{row.failure}")
    interval = row.measurement.interval
    known = f"+/- {100 * interval.half_width:.2f}%" if interval.half_width >= 0 else "(no interval)"
    return printable(f"{row.title}: {format_time(interval.median)} {known}")


def clock(seconds: float) -> str:
    """h:mm:ss or m:ss."""
    minutes, s = divmod(round(seconds), 60)
    hours, m = divmod(minutes, 60)
    return f"{hours}:{m:02d}:{s:02d}" if hours else f"{m}:{s:02d}"


def _make_bar() -> Any:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    return Bar(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True, markup=False, highlight=False, emoji=False),
        transient=True,
    )
