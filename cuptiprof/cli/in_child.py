"""A child process of a script under ``cuptiprof run --profile-child-processes``: a session from its beginning to its end.

Nothing here may break the child. What goes wrong is written into its record, and the parent says it.
"""

from __future__ import annotations

import argparse
import atexit
import os
import signal
import sys
import threading
from contextlib import suppress
from types import FrameType

import msgspec

from cuptiprof.cli.destination import destination
from cuptiprof.cli.process_records import ENVIRONMENT, ChildPlan, ProcessRecord, Recorder
from cuptiprof.cli.run_session import RunSession
from cuptiprof.data.result import Result

_PATIENCE = 30.0  # seconds that the end of a terminated child may take
_OF_NO_USE = ("kernels", "memcpys", "memsets", "graph_launches", "regions", "metric_ranges")


def begin() -> None:
    """At the start of an interpreter, before its program."""
    with suppress(Exception):
        plan = msgspec.json.decode(os.environ[ENVIRONMENT], type=ChildPlan)
        words = sys.orig_argv
        code = words[words.index("-c") + 1] if "-c" in words[:-1] else ""
        if code.startswith("from multiprocessing.resource_tracker") or _is_cuptiprof(words):
            return
        if code.startswith("from multiprocessing.forkserver"):
            _after_each_fork(plan)
            return
        child = _Child(plan, words)
        atexit.register(child.end)
        child.start()


def _is_cuptiprof(words: list[str]) -> bool:
    return "cuptiprof" in (os.path.basename(w) for w in words[1:3])


def _after_each_fork(plan: ChildPlan) -> None:
    """A fork server uses no GPU, so that what it forks may; such a process ends without ``atexit``, but with finalizers."""
    from multiprocessing import util

    def start(_: object) -> None:
        child = _Child(plan, sys.orig_argv)
        util.Finalize(None, child.end, exitpriority=-1000)
        child.start()

    util.register_after_fork(sys.modules[__name__], start)  # held weakly: it must live on


class _Child:
    def __init__(self, plan: ChildPlan, argv: list[str]) -> None:
        self._plan = plan
        self._recorder = Recorder(plan.records, argv)
        self._arguments = argparse.Namespace(**plan.options)
        self._session: RunSession | None = None
        self._is_ending = False
        self._terminated_meanwhile = False

    def start(self) -> None:
        try:
            self._take_name()
            self._recorder.say("running")
            self._place = destination(
                self._plan.output, overwrite=self._arguments.force_overwrite, activities=self._arguments.activities
            )
            session = RunSession(self._arguments)
            session.start()
            self._session = session
            if (
                threading.current_thread() is threading.main_thread()
                and signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
            ):
                signal.signal(signal.SIGTERM, self._terminated)
            os.register_at_fork(after_in_child=self._forked)
        except Exception as e:
            self._fail(e)

    def end(self) -> None:
        """Once; a process that this one forked inherits the call, and has nothing to end."""
        session, self._session = self._session, None
        if session is None or os.getpid() != self._recorder.record.pid:
            return
        self._is_ending = True
        self._save(session)
        self._is_ending = False
        if self._terminated_meanwhile:
            _die()

    def _save(self, session: RunSession) -> None:
        try:
            self._take_name()
            self._recorder.say("saving")
            result = session.stop(quiet=True)
            if not any(len(result.tables[name]) for name in _OF_NO_USE):
                self._recorder.say("empty")
                return
            result.metadata["note"] = _with_process(result, self._recorder.record)
            self._place.write(result, bar=False)
            self._recorder.say("saved", path=self._place.path)
        except Exception as e:
            self._fail(e)

    def _take_name(self) -> None:
        """Multiprocessing's name of it, which says more than its command line does."""
        processes = sys.modules.get("multiprocessing.process")
        name = processes.current_process().name if processes is not None else "MainProcess"
        if name != "MainProcess":
            self._recorder.record.argv = [name]

    def _fail(self, error: Exception) -> None:
        with suppress(OSError):
            self._recorder.say("failed", why=str(error) or type(error).__name__)

    def _terminated(self, number: int, frame: FrameType | None) -> None:
        """``Process.terminate()``, with which a pool ends its workers. If the end hangs, the process does not."""
        if signal.getsignal(signal.SIGALRM) == signal.SIG_DFL:
            signal.setitimer(signal.ITIMER_REAL, _PATIENCE)
        self._terminated_meanwhile = True
        if not self._is_ending:
            self.end()
            _die()

    def _forked(self) -> None:
        if signal.getsignal(signal.SIGTERM) == self._terminated:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
        if self._session is not None:
            self._session = None
            say_forked(self._plan.records)


def _die() -> None:
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    os.kill(os.getpid(), signal.SIGTERM)


def say_forked(records: str) -> None:
    """In a process that was forked from a profiled one, which can have no session."""
    with suppress(Exception):
        Recorder(records, []).say("forked")


def _with_process(result: Result, record: ProcessRecord) -> str:
    note = result.metadata.get("note")
    return f"child process {record.title}" + (f"; {note}" if note else "")
