"""One face of a GPU for all that give it work themselves: bench, verify, the tests' scenarios. One file each way to have one:
:class:`~cuptiprof.device.driver_gpu.DriverGpu`, :class:`~cuptiprof.device.torch_gpu.TorchGpu`,
:class:`~cuptiprof.device.sim_gpu.SimGpu`.

A :class:`~cuptiprof.device.devices.Device` is another thing: what a session listens to (a libcupti, a recorded trace), whoever
gives it work.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from cuptiprof.data.clock_state import ClockReader
from cuptiprof.device.devices import Device
from cuptiprof.device.driver import DeviceAttribute
from cuptiprof.errors import BenchError

HOST_TO_DEVICE, DEVICE_TO_HOST, DEVICE_TO_DEVICE = 1, 2, 8
"""``memcpys.copy_kind`` (CUpti_ActivityMemcpyKind)."""

FLUSH_FACTOR = 2
"""What is written to make the L2 cold, in sizes of the L2: one would leave the lines that its replacement keeps."""
DEFAULT_L2 = 128 << 20  # of a chip that does not say: as large as any so far

Dim3 = tuple[int, int, int]


class Meter(Protocol):
    """What timing a function needs of the place where its work goes: clock, waiting, cold caches, events, graphs.

    The function gives its work to the stream that is current for it, whoever chose that, or to one that was named when this was made.
    """

    device: Device | None
    """for ``profile(device=...)``; None: there is no GPU"""
    ordinal: int
    """its number in this program"""
    now: Callable[[], int]
    """the clock of the host, ns"""
    synchronize: Callable[[], None]
    """wait for everything"""
    why_no_stamps: str
    """why the SM clock cannot be read on the GPU itself; "": it can, as far as is known"""

    @property
    def clocks(self) -> ClockReader:
        """Reads the GPU's clocks now."""

    @property
    def chip(self) -> str:
        """Name of the product or chip; "H100" of the simulated one."""

    @property
    def flush_bytes(self) -> int:
        """What :meth:`flush_l2` writes, bytes."""

    def attribute(self, which: DeviceAttribute) -> int:
        """What the driver says of the GPU."""

    def pause(self, seconds: float) -> None:
        """Do nothing for so long, so that the GPU cools down."""

    def flush_l2(self) -> None:
        """Enqueue a write after which nothing of the function's data is left in the L2."""

    def events(self, count: int) -> Sequence[Any]:
        """Events to be recorded: made beforehand, and the same ones again in the next call."""

    def record(self, event: Any) -> None:
        """Enqueue an event."""

    def passed(self, event: Any) -> bool:
        """Whether the GPU has come to an event that was recorded."""

    def elapsed_ns(self, first: Any, second: Any) -> float:
        """Time between two events that have passed."""

    def hold(self, ns: int) -> None:
        """Keep the stream busy for `ns`, so that what is enqueued meanwhile waits for nothing but the GPU."""

    def peak_memory(self, function: Callable[[], object]) -> int | None:
        """Bytes that a call allocates at its highest, beyond what was there before; None: nothing here tells it."""

    def prepare_stamps(self, count: int) -> None:
        """Room for so many stamps, all zeros. Where there can be none :attr:`why_no_stamps` says why."""

    def stamp(self, index: int) -> None:
        """Enqueue a stamp: the GPU's time and how far the clock of an SM has counted."""

    def stamps(self, count: int) -> npt.NDArray[np.uint64]:
        """Shape (count, 2): GPU time, ns, and cycles, of stamps that have passed; zeros of those that were not taken."""

    def capture(self, function: Callable[[], object]) -> Callable[[], None]:
        """Call `function` once under capture; what replays it.

        Raises:
            BenchError: there is no capturing here, or the function cannot be captured.
        """


class Gpu(Meter, Protocol):
    """A GPU that is given kernels, copies and sets of ours. Streams and graphs are integers; stream 0 is the default one.
    Any thread may launch."""

    def launch(
        self,
        kernel: str,
        grid: Dim3 = (1, 1, 1),
        block: Dim3 = (128, 1, 1),
        *,
        count: int = 1,
        stream: int = 0,
        shared: int = 0,
        arguments: Sequence[int] = (),
        duration_ns: int = 0,
    ) -> None:
        """Launch a kernel `count` times.

        Args:
            kernel: one of the loaded modules; the simulated device takes any name.
            shared: bytes of dynamic shared memory.
            arguments: of 64 bits each; the simulated device needs none.
            duration_ns: of the simulated device's kernel; a real one takes as long as it takes.
        """

    def copy(self, kind: int, size: int, stream: int = 0) -> None:
        """Copy `size` bytes asynchronously between pinned host memory and device memory, or within device memory.

        Args:
            kind: HOST_TO_DEVICE, DEVICE_TO_HOST or DEVICE_TO_DEVICE.
        """

    def copy_peer(self, size: int) -> None:
        """Copy `size` bytes from the second GPU to this one."""

    def set(self, value: int, count: int, *, width: int = 1, stream: int = 0) -> None:
        """Set `count` elements of `width` bytes (1 or 4) asynchronously."""

    def prepare_copies(self, size: int) -> None:
        """Allocate now what copies and sets of up to `size` bytes use; otherwise the first one does."""

    def allocate(self, size: int) -> int:
        """Address of device memory, not cleared."""

    def free(self, address: int) -> None:
        """Give back what :meth:`allocate` gave."""

    def stream(self) -> int:
        """A new stream that does not wait for the default one."""

    def order(self, first: int, then: int) -> None:
        """What `first` has so far comes before what `then` gets from now on: an event recorded and waited for."""

    def graph(self, body: Callable[[int], object]) -> int:
        """Capture what `body` gives to the stream it is called with; the graph, ready to run."""

    def run_graph(self, graph: int, stream: int = 0) -> None:
        """Launch a graph."""

    def release(self) -> None:
        """Wait, and give back the memory of copies and sets."""


def cannot_capture(why: str) -> BenchError:
    """What is said of a function that the driver refuses to capture."""
    return BenchError(
        f"the function cannot be captured into a CUDA graph: {why}",
        hint='a function that synchronises or captures itself needs strategy="kernel" or "event"',
    )
