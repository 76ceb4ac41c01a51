"""How long something takes by itself, on a machine that does other things too."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

TASKS = Path("/proc/self/task")


@contextmanager
def takes_less_than(seconds: float) -> Iterator[None]:
    """Fails when the block takes longer. What threads of this process wait for a processor that others have does not count
    (``/proc/PID/task/TID/schedstat``), what they wait for each other, for a clock or a device does.
    """
    began, queued = time.monotonic(), _queued()
    yield
    took = time.monotonic() - began
    after = _queued()
    took -= sum(after[task] - queued.get(task, 0.0) for task in after)
    assert took < seconds, f"{took:.2f} s, not less than {seconds} s"


def _queued() -> dict[str, float]:
    """Thread -> seconds that it was ready to run and did not."""
    out = {}
    for task in TASKS.iterdir() if TASKS.is_dir() else ():
        try:
            out[task.name] = int((task / "schedstat").read_text().split()[1]) / 1e9
        except (OSError, IndexError, ValueError):  # it ended, or the kernel does not count
            continue
    return out
