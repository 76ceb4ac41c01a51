"""A process that measures points for this one. It is ended with this one, and before it goes on, whatever happens."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from types import TracebackType
from typing import Any, NoReturn

from cuptiprof import errors
from cuptiprof.bench.sweep.failures import GRACE_SECONDS
from cuptiprof.bench.sweep.process_main import IN_PROCESS, Key, SweepJob
from cuptiprof.bench.sweep.running import Watcher
from cuptiprof.errors import BenchError, CuptiprofError

START_SECONDS = 600.0
"""s until the benchmarks are loaded and the device is open."""
SPARE_SECONDS = 20.0
"""s beyond the limit of a point and its grace, in which a process ends itself, until it is ended from here."""
END_SECONDS = 5.0
"""s to clean up, when it is to end, until it is killed."""

# Where this process finds modules the other one looks as well, but last: a folder of benchmarks may hold a json.py.
_CODE = """
import sys
sys.path = [p for p in sys.path if p]
sys.path += [p for p in sys.argv.pop().split(":") if p not in sys.path]
import signal
signal.signal(signal.SIGINT, signal.SIG_DFL)
from cuptiprof.bench.sweep.process_main import main
main()
"""


class OtherProcess:
    """Use as a context manager; the process has ended when the block has, and so has what it has started.

    Attributes:
        environment: in which it measures, see :func:`cuptiprof.bench.environment.environment`.
    """

    def __init__(self, job: SweepJob, name: str) -> None:
        """Start it, load the benchmarks and open the device there.

        Args:
            name: in errors: "process 2 of 5".

        Raises:
            CuptiprofError: it cannot begin; of the class that it had there.
        """
        if os.environ.get(IN_PROCESS):
            raise BenchError(
                "a process that was started to measure cannot start others",
                hint="put the call of run_benchmarks() under `if __name__ == '__main__':`",
            )
        self._name, self._timeout = name, job.timeout
        self._busy, self._point = True, ""
        try:
            data = pickle.dumps(job)
        except (pickle.PicklingError, AttributeError, TypeError) as e:
            raise BenchError(f"an option cannot be given to another process: {e}") from None
        self._pipe, theirs = multiprocessing.Pipe()
        # A session of its own: a Ctrl-C reaches it through this process, which waits for it to clean up.
        with theirs:
            self._child = subprocess.Popen(
                [
                    sys.executable,
                    "-c",
                    _CODE,
                    str(theirs.fileno()),
                    os.pathsep.join(p or os.getcwd() for p in sys.path),
                ],
                stdin=subprocess.DEVNULL,
                stdout=2,
                pass_fds=(theirs.fileno(),),
                start_new_session=True,
                env={**os.environ, IN_PROCESS: "1"},
            )
        try:
            self._pipe.send_bytes(data)
            kind, self.environment = self._receive(START_SECONDS)
            assert kind == "environment"
        except BaseException:
            self.close()
            raise
        self._busy = False

    def __enter__(self) -> OtherProcess:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    def measure(self, keys: Sequence[Key], watcher: Watcher, together: int = 1) -> None:
        """Measure points in this order; rows go to `watcher` as they come.

        A point that does not come back is one, too: its process has ended then, and not this one.

        Args:
            together: so many points at most are measured in turn, and have their limits together.

        Raises:
            BenchError: the process has ended by itself, or had to be ended, since a point does not come back.
            CuptiprofError: one of its own.
        """
        limit = self._timeout * together + GRACE_SECONDS + SPARE_SECONDS if self._timeout else None
        self._busy = True
        try:
            self._pipe.send(list(keys))
        except OSError:
            self._lost()
        while True:
            kind, value = self._receive(limit)
            if kind == "begins":
                self._point = f" while it measured {value}"
                watcher.begins(value)
            elif kind == "row":
                watcher.ended(value)
            elif kind == "hangs":
                watcher.hangs(value)
                raise BenchError(f"{value.title} does not come back: {self._name} was ended")
            else:
                assert kind == "done"
                self._busy = False
                return

    def close(self) -> None:
        """End it, and all that it has started. It may be called again."""
        if self._child.returncode is not None:
            return
        try:
            if not self._busy:
                with contextlib.suppress(OSError):
                    self._pipe.send(None)
            elif not self._has_ended(0):
                os.kill(self._child.pid, signal.SIGINT)
            self._has_ended(END_SECONDS)
        finally:
            # It is not waited for yet, so its number and that of its group are nobody else's.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._child.pid, signal.SIGKILL)
            self._child.wait()
            self._pipe.close()

    def _has_ended(self, seconds: float) -> bool:
        limit = time.monotonic() + seconds
        while os.waitid(os.P_PID, self._child.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is None:
            if time.monotonic() >= limit:
                return False
            time.sleep(0.01)
        return True

    def _receive(self, seconds: float | None) -> tuple[str, Any]:
        try:
            if not self._pipe.poll(seconds):
                raise BenchError(f"{self._name} has not answered for {seconds:.0f} s{self._point}, and was ended")
            kind, value = self._pipe.recv()
        except (EOFError, OSError):
            self._lost()
        if kind == "error":
            name, message, hint = value
            kind_of_error: type[CuptiprofError] = getattr(errors, name)
            raise kind_of_error(message, hint=hint)
        return kind, value

    def _lost(self) -> NoReturn:
        self._has_ended(END_SECONDS)
        self.close()
        status = self._child.returncode
        how = f"by {signal.Signals(-status).name}" if status < 0 else f"with exit status {status}"
        raise BenchError(f"{self._name} has ended {how}{self._point}", hint="what it said itself stands above")
