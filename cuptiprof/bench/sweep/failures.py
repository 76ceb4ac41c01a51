"""How a point may fail: by an error, whose frames hold memory that is let go of, or by taking too long."""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from types import FrameType, TracebackType
from typing import Any

from cuptiprof.bench.results.row import Failure, FailureKind
from cuptiprof.bench.results.stored import MAX_TEXT
from cuptiprof.errors import CuptiError, CuptiprofError

GRACE_SECONDS = 10.0
"""s after the limit until a program that does not come back to Python (a kernel that never ends) is given up."""


def failure_of(error: BaseException, file: str) -> Failure:
    """`error` as a row holds it.

    Args:
        file: of the benchmark: the last line of it that the error passed is named.
    """
    text = error.message if isinstance(error, CuptiprofError) else str(error)
    kind: FailureKind = "out of memory" if is_out_of_memory(error) else "error"
    return Failure(kind, f"{type(error).__name__}: {text}".rstrip(": ")[:MAX_TEXT], _where(error.__traceback__, file))


def is_out_of_memory(error: BaseException) -> bool:
    """Of the host or the GPU, whoever says it: PyTorch's and CuPy's classes have one name, CUPTI and the driver a code."""
    if isinstance(error, CuptiError):
        return "OUT_OF_MEMORY" in error.name
    return isinstance(error, MemoryError) or any(c.__name__ == "OutOfMemoryError" for c in type(error).__mro__)


def release(error: BaseException) -> None:
    """Let go of what the frames of `error` hold (tensors of the point that failed), and of the allocator's cache."""
    seen: BaseException | None = error
    for _ in range(100):  # a chain of causes may be a ring
        if seen is None:
            break
        traceback.clear_frames(seen.__traceback__)
        seen.__traceback__, seen = None, seen.__cause__ or seen.__context__
    release_cache()


def release_cache() -> None:
    """Let go of what nobody uses, on the GPU too."""
    gc.collect()
    torch: Any = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        try:
            torch.cuda.empty_cache()
        except RuntimeError:
            return  # a context that an illegal access has broken: the next point will say so


def _where(tb: TracebackType | None, file: str) -> str:
    last = ""
    while tb is not None:
        if tb.tb_frame.f_code.co_filename == file:
            last = f"{os.path.basename(file)}:{tb.tb_lineno}"
        tb = tb.tb_next
    return last


class TimedOut(BaseException):
    """The limit has passed. Not an Exception, so that a benchmark's own ``except Exception`` does not take it."""


@contextlib.contextmanager
def deadline(seconds: float, give_up: Callable[[], None]) -> Iterator[None]:
    """Raise :class:`TimedOut` in the block after `seconds`; call `give_up` on another thread GRACE_SECONDS later if it is still there.

    Python runs signal handlers between its own instructions and on the main thread only: a block that waits in a native call for
    a kernel that never ends is not reached, so `give_up` is for ending the program. On another thread only that is left.

    Args:
        seconds: 0 for no limit.
    """
    if not seconds:
        yield
        return

    def ring(number: int, frame: FrameType | None) -> None:
        raise TimedOut

    watchdog = threading.Timer(seconds + GRACE_SECONDS, give_up)
    watchdog.daemon = True
    watchdog.start()
    on_main = threading.current_thread() is threading.main_thread()
    previous = signal.signal(signal.SIGALRM, ring) if on_main else None
    try:
        try:
            if on_main:
                signal.setitimer(signal.ITIMER_REAL, seconds)
            yield
        finally:
            # The one ring may come right here, so what follows is in a `finally` of its own.
            if on_main:
                signal.setitimer(signal.ITIMER_REAL, 0)
    finally:
        if on_main:
            signal.signal(signal.SIGALRM, previous if previous is not None else signal.SIG_DFL)
        watchdog.cancel()
