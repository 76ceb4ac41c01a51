"""Programs that are watched while they run, and figures made up."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from terminal_screen import TerminalScreen

from cuptiprof.watch.live_figures import LiveFigures, LiveGpu, LiveSum

PROGRAM = """
import sys, time
from cuptiprof import region
from cuptiprof.sim.sim_device import SimDevice
device = SimDevice()
end = time.monotonic() + float(sys.argv[1])
i = 0
while time.monotonic() < end:
    with region("train"):
        device.launch("gemm", count=10, duration_ns=20_000)
    i += 1
    if i % 20 == 0:
        print("line", i, flush=True)
    time.sleep(0.002)
print("done", i, flush=True)
"""


def environment(runtime: Path | None = None, **more: str) -> dict[str, str]:
    """Of a process on the simulated device whose sockets are in a folder of its own."""
    out = {**os.environ, "CUPTIPROF_DEVICE": "sim", "PYTHONUNBUFFERED": "1", **more}
    if runtime is not None:
        out["XDG_RUNTIME_DIR"] = str(runtime)
    return out


def command(*words: str) -> list[str]:
    return [sys.executable, "-m", "cuptiprof", *words]


def until(seen: Callable[[], object], seconds: float = 60.0) -> None:
    """Wait for it."""
    end = time.monotonic() + seconds
    while not seen():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.02)


class OnTerminal:
    """A process on a terminal of its own, and what stands there."""

    def __init__(self, words: list[str], env: Mapping[str, str], rows: int = 24, columns: int = 90) -> None:
        self._master, slave = pty.openpty()
        self.resize(rows, columns)
        self.screen = TerminalScreen(rows, columns)
        self.process = subprocess.Popen(
            words, env=dict(env), stdin=slave, stdout=slave, stderr=slave, start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )  # fmt: skip
        os.close(slave)
        self.raw = ""

    def resize(self, rows: int, columns: int) -> None:
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def type(self, text: str) -> None:
        os.write(self._master, text.encode())

    def read(self, seconds: float = 0.1) -> bool:
        """What was written meanwhile; False: nothing more will be."""
        if not select.select([self._master], [], [], seconds)[0]:
            return True
        try:
            data = os.read(self._master, 1 << 16)
        except OSError:
            return False
        text = data.decode()
        self.raw += text
        self.screen.write(text)
        return bool(data)

    def read_until(self, seen: Callable[[], object], seconds: float = 60.0) -> None:
        end = time.monotonic() + seconds
        while not seen():
            assert self.read() and time.monotonic() < end, "\n".join(self.screen.text)

    def wait(self, seconds: float = 60.0) -> int:
        """Its exit status; negative: the signal."""
        end = time.monotonic() + seconds
        while self.read():
            assert time.monotonic() < end
        os.close(self._master)
        return self.process.wait(seconds)


def made_up(**fields: object) -> LiveFigures:
    """Figures of a busy session."""
    kernels = tuple(
        LiveSum(f"void kernel{i}<float, {i}>(float*, int)", 1000 - i, 0, 10**9 - i, 10, 0, 10**7) for i in range(40)
    )
    given: dict[str, object] = {
        "pid": 4711,
        "program": "train.py --epochs 1",
        "device": "sim",
        "simulated": True,
        "state": "running",
        "elapsed_s": 12.3,
        "interval_s": 1.0,
        "gpus": (LiveGpu(0, 87.25, 61.5), LiveGpu(1, 0.0, 12.0)),
        "launches": 123456,
        "recent_launches": 4321,
        "kernels": kernels,
        "regions": (LiveSum("train/fwd", 10, 0, 5 * 10**8, 1, 0, 10**8), LiveSum("", 3, 0, 7, 0, 0, 0)),
        "kernel_names": 77,
        "region_names": 2,
        "copies": (LiveSum("HtoD", 5, 4 << 20, 1000, 1, 1_000_000, 100),),
        "sets": (),
        "memory_bytes": 3 << 30,
        "kept_bytes": 12 << 20,
        "budget_bytes": 256 << 20,
        "losses": {},
        "missed": 0,
        **fields,
    }
    return LiveFigures(**given)  # type: ignore[arg-type]
