"""The GPU as the harness uses it: its clock, waiting, cold caches, events, graphs. One file each way to have one."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from cuptiprof.data.clock_state import ClockReader, NoClocks
from cuptiprof.device.devices import Device
from cuptiprof.device.driver import DeviceAttribute
from cuptiprof.errors import BenchError

FLUSH_FACTOR = 2
"""What is written to make the L2 cold, in sizes of the L2: one would leave the lines that its replacement keeps."""
DEFAULT_L2 = 128 << 20  # of a chip that does not say: as large as any so far


class Gpu(Protocol):
    """One GPU. Work goes to the stream that is current for the function that is measured."""

    device: Device | None
    """for ``profile(device=...)``; None: there is no GPU"""
    ordinal: int
    """its number in this program"""
    clocks: ClockReader
    chip: str
    """name of the product or chip; "H100" of the simulated one"""
    flush_bytes: int

    def now(self) -> int:
        """The clock of the host, ns."""

    def synchronize(self) -> None:
        """Wait for everything."""

    def flush_l2(self) -> None:
        """Enqueue a write after which nothing of the function's data is left in the L2."""

    def events(self, count: int) -> Sequence[Any]:
        """Events to be recorded: made beforehand, and the same ones again in the next call."""

    def record(self, event: Any) -> None:
        """Enqueue an event."""

    def elapsed_ns(self, first: Any, second: Any) -> float:
        """Time between two events that have passed."""

    def capture(self, function: Callable[[], object]) -> Callable[[], None]:
        """Call `function` once under capture; what replays it.

        Raises:
            BenchError: there is no capturing here, or the function cannot be captured.
        """

    def attribute(self, which: DeviceAttribute) -> int:
        """What the driver says of the GPU."""


class HostGpu:
    """No GPU at all: functions of the host alone, strategies "cpu", "wall" and "manual"."""

    device: Device | None = None
    ordinal = 0
    chip = ""
    flush_bytes = 0

    def __init__(self) -> None:
        self.clocks: ClockReader = NoClocks("")
        self.now = time.perf_counter_ns

    def synchronize(self) -> None:
        pass

    def flush_l2(self) -> None:
        raise _no_gpu("a cold L2")

    def events(self, count: int) -> Sequence[Any]:
        raise _no_gpu("events")

    def record(self, event: Any) -> None:
        raise _no_gpu("events")

    def elapsed_ns(self, first: Any, second: Any) -> float:
        raise _no_gpu("events")

    def capture(self, function: Callable[[], object]) -> Callable[[], None]:
        raise _no_gpu("graphs")

    def attribute(self, which: DeviceAttribute) -> int:
        raise _no_gpu("attributes")


def cannot_capture(why: str) -> BenchError:
    """What is said of a function that the driver refuses to capture."""
    return BenchError(
        f"the function cannot be captured into a CUDA graph: {why}",
        hint='a function that synchronises or captures itself needs strategy="kernel" or "event"',
    )


def _no_gpu(what: str) -> BenchError:
    return BenchError(f'device="host" has no GPU, so no {what}', hint='strategy="cpu" or "wall"')
