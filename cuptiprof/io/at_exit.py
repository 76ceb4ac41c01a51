"""Threads of ours that run Python end before the interpreter does: one that comes back into it later aborts the process."""

from __future__ import annotations

import atexit
import weakref
from typing import Protocol


class Ends(Protocol):
    """Something with a thread."""

    def end(self) -> None:
        """End the thread; may be called more than once, and in a forked child, which has no such thread."""


_running: weakref.WeakSet[Ends] = weakref.WeakSet()


def before_exit(thing: Ends) -> None:
    """Call ``thing.end()`` before the interpreter ends, if it still exists then."""
    _running.add(thing)


# Registered when cuptiprof is imported: what the program registers later (it may stop its session there) runs earlier.
@atexit.register
def _end_all() -> None:
    for thing in list(_running):
        thing.end()
