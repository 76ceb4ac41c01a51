"""A limit on the time that a point may take."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType

GRACE_SECONDS = 10.0
"""s after the limit until a program that does not come back to Python (a kernel that never ends) is given up."""


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
