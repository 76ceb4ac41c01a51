"""What a scenario does with a GPU, whichever it is. Implemented over the stand-in and over the driver."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

HOST_TO_DEVICE, DEVICE_TO_HOST, DEVICE_TO_DEVICE = 1, 2, 8
"""``memcpys.copy_kind`` (CUpti_ActivityMemcpyKind)."""

LARGEST_COPY = 1 << 20
"""Bytes; memory for copies and sets is allocated once, before anything is traced."""


class Gpu(Protocol):
    """One GPU. Streams and graphs are integers; stream 0 is the default one. Any thread may launch.

    A kernel's code depends on its name: two names have different numbers of instructions. Each launch loads one word a
    thread and adds 1 to a count in device memory, which ``executed`` reads.
    """

    device: str
    """For ``profile(device=...)``."""

    simulated: bool
    """What a result must say of itself."""

    exact_times: bool
    """A kernel's record lasts exactly as long as the kernel was told to."""

    def prepare(self, *names: str) -> None:
        """Load these kernels. Others are loaded at their first launch, which takes milliseconds and cannot be captured."""

    def launch(
        self,
        name: str,
        grid: tuple[int, int, int] = (1, 1, 1),
        block: tuple[int, int, int] = (128, 1, 1),
        *,
        count: int = 1,
        stream: int = 0,
        duration_ns: int = 0,
        shared: int = 0,
    ) -> None:
        """Launch `count` times the kernel that the device calls ``kernels.entry_name(name)``.

        duration_ns: at least so long; 0: as long as it takes. shared: bytes of dynamic shared memory.
        """

    def launch_refused(self, name: str) -> None:
        """A launch that the driver refuses; the program goes on."""

    def copy(self, kind: int, size: int, stream: int = 0) -> None:
        """Asynchronous copy, from or to pinned memory of the host, or within the device."""

    def set(self, value: int, size: int, stream: int = 0) -> None:
        """Set `size` bytes asynchronously."""

    def allocate(self, size: int) -> int:
        """Address of device memory."""

    def free(self, address: int) -> None: ...

    def stream(self) -> int:
        """A new stream that does not wait for the default one."""

    def order(self, first: int, then: int) -> None:
        """What `first` has so far comes before what `then` gets from now on: an event recorded and waited for."""

    def graph(self, body: Callable[[int], None]) -> int:
        """Capture what `body` gives to the stream it is called with. Its kernels must have been prepared."""

    def run_graph(self, graph: int, stream: int = 0) -> None: ...

    def synchronize(self) -> None: ...

    def profiler_start(self) -> None:
        """cuProfilerStart, as cudaProfilerStart calls it."""

    def profiler_stop(self) -> None: ...

    def executed(self) -> int:
        """Kernel executions whose effect the program can see. Compare two readings of one session."""

    def instructions(
        self, name: str, grid: tuple[int, int, int] = (1, 1, 1), block: tuple[int, int, int] = (128, 1, 1)
    ) -> float:
        """Warp instructions of one launch without a duration (``inst_executed``). Not while a session runs."""
