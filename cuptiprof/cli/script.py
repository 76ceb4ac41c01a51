"""Runs a script as ``python script.py`` or ``python -m module`` would, inside this process.

Same ``__main__``, ``sys.argv``, ``sys.path``, exit status, tracebacks and signals. What the script leaves to the end of the
process (``atexit``, threads) finds the same as without us, too.
"""

from __future__ import annotations

import argparse
import atexit
import builtins
import io
import os
import runpy
import signal
import sys
import threading
import types
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.machinery import SourceFileLoader
from types import FrameType, TracebackType
from typing import Any

from cuptiprof.cli.fork_warning import our_threads_do_not_count
from cuptiprof.cli.standard_streams import usable


@dataclass
class Ended:
    """How a script ended.

    Attributes:
        status: its exit status.
        died_of: the signal that ended it.
        error: of an exception, its text.
        forked: this is a child process that the script forked: it goes on after the script, as it would without us.
    """

    status: int
    died_of: int | None = None
    error: str = ""
    forked: bool = False

    def leave(self) -> int:
        """The exit status; does not come back when a signal is due: the shell shall see what would have been without us."""
        if self.died_of is not None:
            if self.died_of == signal.SIGINT:
                atexit._run_exitfuncs()  # which the interpreter does before it dies of Ctrl-C
            flush(sys.stdout)
            flush(sys.stderr)
            signal.signal(self.died_of, signal.SIG_DFL)
            os.kill(os.getpid(), self.died_of)
        return self.status


class _Terminated(BaseException):
    """SIGTERM arrived."""


def _terminated(number: int, frame: FrameType | None) -> None:
    raise _Terminated


def _default_in_child() -> None:
    """A forked child dies of SIGTERM as it would without us: ``Process.terminate()``, ``Pool.terminate()``."""
    if signal.getsignal(signal.SIGTERM) is _terminated:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


os.register_at_fork(after_in_child=_default_in_child)


def run_script(arguments: argparse.Namespace) -> Ended:
    """Run it to its end, non-daemon threads included."""
    pid = os.getpid()
    out, err = sys.stdout, sys.stderr
    with our_threads_do_not_count(), _sigterm_raises(), _as_main(arguments):
        ended = _run(arguments)
        if ended.died_of != signal.SIGTERM:
            try:
                _join_threads()
            except _Terminated:
                ended = Ended(143, signal.SIGTERM)
            except KeyboardInterrupt as e:  # the interpreter goes on to its end, too
                _show(e)
        flush(sys.stdout)
    if os.getpid() != pid:
        ended.forked = True
    else:
        sys.stdout = out if usable(out) else sys.stdout
        sys.stderr = err if usable(err) else sys.stderr
    return ended


def _run(arguments: argparse.Namespace) -> Ended:
    try:
        if arguments.module:
            runpy._run_module_as_main(arguments.script)  # type: ignore[attr-defined]  # what python -m calls
        else:
            _run_file(arguments.script)
        return Ended(0)
    except SystemExit as e:
        if e.code is None or isinstance(e.code, int):
            return Ended(e.code or 0)
        with suppress(OSError, ValueError, AttributeError):  # no standard error, or closed
            print(e.code, file=sys.stderr)
        return Ended(1)
    except KeyboardInterrupt as e:
        _show(e)
        return Ended(130, signal.SIGINT)
    except _Terminated:
        return Ended(143, signal.SIGTERM)
    except BaseException as e:
        _show(e)
        return Ended(1, error=str(e)[:1000])


def _run_file(script: str) -> None:
    if os.path.isdir(script) or script.endswith(".pyc") or zipfile.is_zipfile(script):
        runpy.run_path(script, run_name="__main__")
        return
    main = sys.modules["__main__"].__dict__
    main["__file__"] = path = os.path.abspath(script)
    main["__cached__"] = None
    main["__loader__"] = SourceFileLoader("__main__", path)
    with io.open_code(path) as f:
        code = compile(f.read(), path, "exec", dont_inherit=True)
    exec(code, main)


def _join_threads() -> None:
    """The interpreter waits for these too."""
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and not thread.daemon:
            thread.join()


@contextmanager
def _as_main(arguments: argparse.Namespace) -> Iterator[None]:
    """``__main__``, ``sys.argv`` and ``sys.path`` as the script shall find them; kept when the process is all ours."""
    main = types.ModuleType("__main__")
    main.__dict__["__builtins__"] = builtins
    if "__annotations__" in vars(sys.modules["__main__"]):
        main.__annotations__ = {}
    before = sys.argv, list(sys.path), sys.modules["__main__"]
    sys.modules["__main__"] = main
    sys.argv = [arguments.script, *arguments.args]
    if not getattr(sys.flags, "safe_path", False):
        # In the place of our own folder, or that of `python -m cuptiprof`.
        here = os.getcwd() if arguments.module else os.path.dirname(os.path.realpath(arguments.script))
        sys.path[0:1] = [here]
    try:
        yield
    finally:
        if not arguments.own_process:
            sys.argv, sys.path[:], sys.modules["__main__"] = before


@contextmanager
def _sigterm_raises() -> Iterator[None]:
    """SIGTERM ends the script, not the process, so that the profile is saved. One that is ignored stays ignored."""
    if threading.current_thread() is not threading.main_thread() or signal.getsignal(signal.SIGTERM) != signal.SIG_DFL:
        yield
        return
    signal.signal(signal.SIGTERM, _terminated)
    try:
        yield
    finally:
        if signal.getsignal(signal.SIGTERM) is _terminated:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)


@contextmanager
def finishing(ended: Ended) -> Iterator[None]:
    """Ctrl-C and SIGTERM wait until the profile is saved; `ended` then says so. A second one does not wait."""
    previous: dict[int, Any] = {}

    def note(number: int, frame: FrameType | None) -> None:
        ended.died_of, ended.status = number, 128 + number
        for each, handler in previous.items():
            signal.signal(each, handler)
        with suppress(OSError, ValueError, AttributeError):
            sys.stderr.write("cuptiprof: finishing the profile; once more to leave without it\n")

    if threading.current_thread() is threading.main_thread():
        for number, default in ((signal.SIGINT, signal.default_int_handler), (signal.SIGTERM, signal.SIG_DFL)):
            if signal.getsignal(number) == default:
                previous[number] = signal.signal(number, note)
    try:
        yield
    finally:
        for each, handler in previous.items():
            signal.signal(each, handler)


def flush(stream: Any) -> None:
    """As far as it goes: the script may have closed it, or its reader left."""
    with suppress(OSError, ValueError, AttributeError):
        stream.flush()


def _show(error: BaseException) -> None:
    """The traceback from the script's own frames on, where the script wants it."""
    tb: TracebackType | None = error.__traceback__
    while tb is not None and ("runpy" in tb.tb_frame.f_code.co_filename or tb.tb_frame.f_code.co_filename == __file__):
        tb = tb.tb_next
    error = error.with_traceback(tb)
    sys.excepthook(type(error), error, tb)
