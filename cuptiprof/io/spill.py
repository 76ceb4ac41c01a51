"""keep="spill": full stores go to disk as Arrow IPC files while the session runs."""

from __future__ import annotations

import contextlib
import os
import queue
import threading
import time
import weakref
from collections.abc import Mapping
from typing import Any

from cuptiprof import _core
from cuptiprof.data.result import from_native
from cuptiprof.data.tables import Table
from cuptiprof.errors import SessionError
from cuptiprof.io.at_exit import before_exit
from cuptiprof.io.spill_folder import SpillFolder

_PERIOD = 0.01  # s between looks for a full store
_PROGRESS_PERIOD = 0.1


class Spill:
    """Takes full stores from the session on a thread of its own and writes them to a folder, one folder a cycle.

    Args:
        header: metadata of the run, for whoever opens the folder when this process could not finish.
    """

    def __init__(self, session: _core.Session, parent: Any, header: Mapping[str, Any]) -> None:
        self._session = session
        self._parent = os.path.abspath(parent) if parent is not None else None
        self._header = header
        self.folder: SpillFolder | None = SpillFolder(parent, header)
        self.error: Exception | None = None
        self.lost_rows = 0
        self._lost_kernels = 0
        self._cycle = 0
        self._written_before = 0
        self._before: dict[str, int] = {}
        self._pid = os.getpid()
        self._asked = self._answered = 0  # tickets of those who wait until all that was handed over is written
        # Not Condition or Event: Ctrl-C in the middle of theirs leaves their locks taken, or comes out as a RuntimeError.
        self._answers: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._stop = False
        self._next_progress = 0.0
        self._wake: queue.SimpleQueue[None] = queue.SimpleQueue()
        # The thread holds no reference while it has nothing to do, so that a session that is dropped goes at once.
        self._thread = threading.Thread(
            target=_write_all, args=[weakref.ref(self), self._wake], name="cuptiprof-spill", daemon=True
        )

    @property
    def segments(self) -> int:
        """Stores written so far, of all cycles."""
        return self._written_before + (self.folder.segments if self.folder is not None else 0)

    def start(self) -> None:
        """Begin to write; the session runs.

        Raises:
            SessionError: no thread can be had.
        """
        try:
            self._thread.start()
        except RuntimeError as e:
            if isinstance(e.__context__, KeyboardInterrupt):  # in the middle of the Condition that start() waits on
                raise e.__context__ from None
            raise SessionError(f"cannot spill: {e}", hint="the limit on threads (ulimit -u) is reached") from None
        before_exit(self)

    def write_waiting(self) -> bool:
        """What the thread does, again and again: writes the stores that are full. False: it shall end."""
        asked = self._asked
        while (store := self._session.next_segment(0)) is not None:
            self._write(from_native(store.tables(), store.strings()))
            if self._stop:
                return False
        if time.monotonic() >= self._next_progress:
            self._note_progress()
            self._next_progress = time.monotonic() + _PROGRESS_PERIOD
        if self._answered != asked:
            self._answered = asked
            self._answers.put(None)
        return not self._stop

    def read(self) -> list[dict[str, Table]]:
        """The tables of each store of this cycle, whose last was handed over before this call."""
        self._asked += 1
        ticket = self._asked
        self._wake.put(None)
        while self._answered < ticket and self._thread.is_alive():
            with contextlib.suppress(queue.Empty):  # an answer may be one that an interrupted call did not wait for
                self._answers.get(timeout=0.1)
        self._write_rest()
        return self.folder.read() if self.folder is not None else []

    def next_cycle(self, cycle: int) -> None:
        """The stores so far are in a result; later ones go to a folder of their own. May be done again when interrupted."""
        if cycle <= self._cycle:
            return
        before, written = self._progress(), self.segments
        if self.folder is not None:
            self.folder.remove()
        self.folder, self._before, self._written_before = None, before, written
        self._cycle = cycle

    def discard(self) -> None:
        """Throw away what was written in this cycle (a warm-up)."""
        self.read()
        self.next_cycle(self._cycle + 1)
        self._cycle -= 1

    def end(self) -> None:
        """End the thread: the session stopped, or the interpreter is about to."""
        self.leave_off()
        if self._thread.is_alive() and self._pid == os.getpid() and self._thread is not threading.current_thread():
            self._thread.join()

    def leave_off(self) -> None:
        """End the thread after the store that it is at, without waiting for it: nobody wants the rest."""
        self._stop = True
        self._wake.put(None)

    def _write_rest(self) -> None:
        if self._thread.is_alive():
            return
        while (store := self._session.next_segment(0)) is not None:  # the thread ended before the session did
            self._write(from_native(store.tables(), store.strings()))

    def _write(self, tables: Mapping[str, Table]) -> None:
        import pyarrow as pa

        try:
            if self.folder is None:
                self.folder = SpillFolder(self._parent, self._header)
            self.folder.write(tables)
        except Exception as e:
            # The disk is full or gone: the program goes on, the loss is counted and the first reason kept.
            if not isinstance(e, (OSError, pa.ArrowException)):
                e = SessionError(f"{type(e).__name__}: {e}")
            self.error = self.error or e
            self.lost_rows += sum(len(t) for n, t in tables.items() if n != "launch_configs")
            self._lost_kernels += len(tables["kernels"])

    def _note_progress(self) -> None:
        if self.folder is None:
            return
        now = self._progress()
        try:
            self.folder.note_progress({name: n - self._before.get(name, 0) for name, n in now.items()})
        except OSError as e:
            self.error = self.error or e

    def _progress(self) -> dict[str, int]:
        """Kernel launches, those whose record has not to be among the rows, and losses, since the start."""
        counts = self._session.counts()
        losses = dict(self._session.losses())
        losses["spill_dropped"] += self.lost_rows
        accounted = self._lost_kernels + counts["kernels_lost_in_pool"] + losses["filter_rejected"]
        return {"launches": counts["launches"], "accounted": accounted, **losses}


def _write_all(reference: weakref.ref[Spill], wake: queue.SimpleQueue[None]) -> None:
    while True:
        with contextlib.suppress(queue.Empty):
            wake.get(timeout=_PERIOD)
        spill = reference()
        if spill is None or not spill.write_waiting():
            return
        del spill
