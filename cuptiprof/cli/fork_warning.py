"""From Python 3.12 on a fork in a process of several threads is warned of. A script is to be where it would be without us: our threads
do not count."""

from __future__ import annotations

import os
import re
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress

_MESSAGE = re.compile(r"This process \(pid=\d+\) is multi-threaded, use of \w+\(\) may lead to deadlocks in the child")
_OURS = ("cuptiprof", "cupti-sim")  # what native threads of ours, and of the stand-in, are called


class _OnlyOurThreads:
    """In the place of a filter's pattern: matches that warning as long as there is no thread but these and the main one."""

    def __init__(self, ours: set[str]) -> None:
        self._ours = ours

    def match(self, text: str) -> bool:
        if not _MESSAGE.match(text):
            return False
        return all(tid in self._ours or _name(tid).startswith(_OURS) for tid in _threads())


@contextmanager
def our_threads_do_not_count() -> Iterator[None]:
    """Inside, threads that run already are ours, with those of libraries that we brought along, such as NumPy's."""
    entry = ("ignore", _OnlyOurThreads({*_threads(), str(threading.get_native_id())}), DeprecationWarning, None, 0)
    warnings.filters.insert(0, entry)  # type: ignore[attr-defined]
    try:
        yield
    finally:
        with suppress(ValueError):  # the script may have made others
            warnings.filters.remove(entry)  # type: ignore[attr-defined]


def _threads() -> list[str]:
    try:
        return os.listdir("/proc/self/task")
    except OSError:
        return []


def _name(tid: str) -> str:
    try:
        with open(f"/proc/self/task/{tid}/comm", encoding="utf-8", errors="replace") as f:
            return f.read()
    except OSError:  # it has ended
        return _OURS[0]
