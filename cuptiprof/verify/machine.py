"""The machine that probes run on. The same calls go to a GPU, or to the simulated device."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from cuptiprof import _core
from cuptiprof.data.occupancy import chip_limits
from cuptiprof.device.driver import DeviceAttribute, FunctionAttribute
from cuptiprof.errors import DeviceError
from cuptiprof.verify.kernel_launch import Buffer, Facts, KernelLaunch

if TYPE_CHECKING:
    from cuptiprof.device.devices import Device

HOST_TO_DEVICE, DEVICE_TO_HOST, DEVICE_TO_DEVICE = 1, 2, 8
"""``memcpys.copy_kind`` (CUpti_ActivityMemcpyKind)."""


class Machine(Protocol):
    """What probes do. Streams, events and graphs are integers; stream 0 is the default one."""

    facts: Facts
    library: _core.CuptiLibrary

    @property
    def device(self) -> str | Device:
        """For ``profile(device=...)``."""

    def registers(self, kernel: str) -> tuple[int, int]:
        """(registers a thread, static shared memory in bytes) of a kernel."""

    def launch(self, launch: KernelLaunch, stream: int = 0) -> None: ...

    def copy(self, kind: int, size: int, stream: int = 0) -> None:
        """Copy `size` bytes between pinned host memory and device memory, or within device memory."""

    def copy_peer(self, size: int) -> None:
        """Copy `size` bytes from the second GPU to the first."""

    def set(self, value: int, width: int, count: int, stream: int = 0) -> None:
        """Set `count` elements of `width` bytes (1 or 4)."""

    def stream(self) -> int: ...

    def order(self, first: int, then: int) -> None:
        """What was given to `first` so far comes before what `then` gets from now on."""

    def graph(self, body: Callable[[int], None]) -> int:
        """Capture what `body` gives to the stream it is called with."""

    def run_graph(self, graph: int) -> None: ...

    def synchronize(self) -> None: ...

    def word(self, buffer: Buffer) -> float | None:
        """First 32-bit word of a buffer that a launch used; None: this machine has no memory."""

    def prepare(self, launch: KernelLaunch) -> None:
        """Allocate what a launch uses, before anything is traced or captured."""

    def release(self) -> None:
        """Give back what the probe used."""


class CudaMachine:
    """The first GPU of this process.

    Raises:
        DeviceError: no driver, no GPU, or this build has no probes.
        CuptiError: a CUDA call failed.
    """

    device = "cuda"

    def __init__(self) -> None:
        from cuptiprof.device.devices import open_device

        library = open_device("cuda").library
        if not _core.probe_images():
            raise DeviceError(
                "this build of cuptiprof has no probe kernels: nvcc was not found when it was built",
                hint="install the CUDA toolkit (or set CUDACXX to its nvcc) and reinstall cuptiprof",
            )
        self.library = library
        self._gpu = _core.ProbeDevice(library, 0)
        self._others: list[Any] = []
        self._buffers: dict[int, tuple[Buffer, int]] = {}
        self._copies: dict[tuple[str, int], int] = {}
        major, minor = (
            self._gpu.attribute(DeviceAttribute.COMPUTE_CAPABILITY_MAJOR),
            self._gpu.attribute(DeviceAttribute.COMPUTE_CAPABILITY_MINOR),
        )
        chip = _core.chip_name(library, 0)
        self.facts = Facts(
            chip=chip,
            name=f"GPU 0 ({chip}, compute capability {major}.{minor})",
            compute=(major, minor),
            sms=self._gpu.attribute(DeviceAttribute.MULTIPROCESSOR_COUNT),
            l2_bytes=self._gpu.attribute(DeviceAttribute.L2_CACHE_SIZE),
            memory_bytes=self._gpu.memory_info()[0],
            limits=chip_limits(major, minor),
            devices=_core.ProbeDevice.count(library),
        )

    def registers(self, kernel: str) -> tuple[int, int]:
        return self._gpu.kernel_attribute(kernel, FunctionAttribute.NUM_REGS), self._gpu.kernel_attribute(
            kernel, FunctionAttribute.SHARED_SIZE_BYTES
        )

    def _address(self, buffer: Buffer) -> int:
        if id(buffer) not in self._buffers:
            self._buffers[id(buffer)] = buffer, self._gpu.allocate(buffer.bytes)
        return self._buffers[id(buffer)][1]

    def launch(self, launch: KernelLaunch, stream: int = 0) -> None:
        arguments = [self._address(a) if isinstance(a, Buffer) else a for a in launch.args]
        grid, block = (launch.grid, 1, 1), (launch.block, 1, 1)
        self._gpu.launch(launch.kernel, grid, block, launch.shared, stream, arguments)

    def _copy_memory(self, which: str, size: int) -> int:
        if (which, size) not in self._copies:
            # Not zeroed: setting it would be a record too.
            self._copies[which, size] = (
                self._gpu.allocate_host(size) if which == "host" else self._gpu.allocate(size, False)
            )
        return self._copies[which, size]

    def copy(self, kind: int, size: int, stream: int = 0) -> None:
        to = self._copy_memory("host" if kind == DEVICE_TO_HOST else "to", size)
        source = self._copy_memory("host" if kind == HOST_TO_DEVICE else "from", size)
        self._gpu.copy(kind, to, source, size, stream)

    def copy_peer(self, size: int) -> None:
        if not self._others:
            self._others.append(_core.ProbeDevice(self.library, 1))
        self._gpu.copy_peer(
            self._copy_memory("to", size), self._others[0], self._others[0].allocate(size, False), size, 0
        )

    def set(self, value: int, width: int, count: int, stream: int = 0) -> None:
        self._gpu.set(self._copy_memory("to", width * count), value, width, count, stream)

    def stream(self) -> int:
        return self._gpu.make_stream()

    def order(self, first: int, then: int) -> None:
        self._gpu.order(first, then)

    def graph(self, body: Callable[[int], None]) -> int:
        stream = self._gpu.make_stream()
        self._gpu.begin_capture(stream)
        body(stream)
        return self._gpu.end_capture(stream)

    def run_graph(self, graph: int) -> None:
        self._gpu.launch_graph(graph, 0)

    def synchronize(self) -> None:
        self._gpu.synchronize()

    def word(self, buffer: Buffer) -> float | None:
        return float(self._gpu.read_word(self._address(buffer)))

    def prepare(self, launch: KernelLaunch) -> None:
        for argument in launch.args:
            if isinstance(argument, Buffer):
                self._address(argument)

    def release(self) -> None:
        self._gpu.synchronize()
        for _, address in self._buffers.values():
            self._gpu.free(address)
        for address in self._copies.values():
            self._gpu.free(address)
        self._buffers.clear()
        self._copies.clear()
        self._others.clear()
