"""A real GPU through the driver: its primary context, streams of ours, kernels of our modules."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Sequence
from functools import cached_property, partial
from typing import Any

import numpy as np
import numpy.typing as npt

from cuptiprof import _core
from cuptiprof.data.clock_state import ClockReader
from cuptiprof.device.clock_kernel import CLOCK_STAMP, STAMP_BYTES, clock_stamp_ptx
from cuptiprof.device.devices import Device
from cuptiprof.device.driver import DeviceAttribute, FunctionAttribute
from cuptiprof.device.gpu import DEFAULT_L2, DEVICE_TO_HOST, FLUSH_FACTOR, HOST_TO_DEVICE, Dim3, cannot_capture
from cuptiprof.device.gpu_clocks import nvml_clocks
from cuptiprof.device.hold import HOLD, hold_ptx
from cuptiprof.device.streams import capturable, current_stream, handle_of
from cuptiprof.errors import CuptiError


class DriverGpu:
    """A GPU through ``_core.ProbeDevice``.

    Args:
        ordinal: its number in this process.
        stream: handle of the one that functions under measurement work in; None: CuPy's current one, else the default one, which
            waits for all streams of the context that were not made non-blocking, as they do for it.
        with_probes: load the embedded probe kernels.
        probe: the native device; None: it is made.

    Raises:
        CuptiError: a CUDA call failed.
    """

    def __init__(
        self,
        device: Device,
        ordinal: int = 0,
        *,
        with_probes: bool = False,
        probe: Any = None,
        stream: int | None = None,
    ) -> None:
        self.device: Device | None = device
        self.ordinal = ordinal
        self._library = device.library
        self._probe = probe or _core.ProbeDevice(device.library, ordinal, with_probes=with_probes)
        self._memory: dict[str, tuple[int, int]] = {}  # what it is for -> address, bytes
        self._outgrown: list[int] = []  # freeing would wait for the GPU
        self._peer: Any = None
        self._events: list[Any] = []
        self._stream = current_stream() if stream is None else stream
        self._captured_in: list[Any] = []
        self._can_hold = False
        self._can_stamp = False
        self.why_no_stamps = ""
        self._sms = 0
        self.now: Callable[[], int] = time.perf_counter_ns
        self.synchronize: Callable[[], None] = self._probe.synchronize

    @cached_property
    def chip(self) -> str:
        return _core.chip_name(self._library, self.ordinal)

    @cached_property
    def clocks(self) -> ClockReader:
        pci = map(
            self.attribute, (DeviceAttribute.PCI_DOMAIN_ID, DeviceAttribute.PCI_BUS_ID, DeviceAttribute.PCI_DEVICE_ID)
        )
        return nvml_clocks("{:08X}:{:02X}:{:02X}.0".format(*pci))

    @cached_property
    def flush_bytes(self) -> int:
        return FLUSH_FACTOR * (self.attribute(DeviceAttribute.L2_CACHE_SIZE) or DEFAULT_L2)

    def attribute(self, which: DeviceAttribute) -> int:
        return int(self._probe.attribute(which))

    def pause(self, seconds: float) -> None:
        time.sleep(seconds)

    def free_bytes(self) -> int:
        """Device memory that is free."""
        return int(self._probe.memory_info()[0])

    def kernel_attribute(self, kernel: str, which: FunctionAttribute) -> int:
        """Of a kernel of the loaded modules."""
        return int(self._probe.kernel_attribute(kernel, which))

    def load_module(self, image: bytes) -> None:
        """PTX text or a cubin; its kernels can be launched."""
        self._probe.load_module(image)

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
        launch = self._probe.launch
        for _ in range(count):
            launch(kernel, grid, block, shared, stream, arguments)

    def _held(self, purpose: str, size: int) -> int:
        """Address of memory of ours, `size` bytes at least: of the host "host" and "stamps", of the device "to", "from" and "flush"."""
        address, held = self._memory.get(purpose, (0, 0))
        if held < size:
            if held:
                self._outgrown.append(address)
            # Not cleared: setting it would be a record too.
            if purpose in ("host", "stamps"):
                address = self._probe.allocate_host(size)
            else:
                address = self._probe.allocate(size, zeroed=False)
            self._memory[purpose] = address, size
        return address

    def prepare_copies(self, size: int) -> None:
        for purpose in ("host", "to", "from"):
            self._held(purpose, size)

    def copy(self, kind: int, size: int, stream: int = 0) -> None:
        to = self._held("host" if kind == DEVICE_TO_HOST else "to", size)
        source = self._held("host" if kind == HOST_TO_DEVICE else "from", size)
        self._probe.copy(kind, to, source, size, stream)

    def copy_peer(self, size: int) -> None:
        if self._peer is None:
            self._peer = _core.ProbeDevice(self._library, 1, with_probes=False)
        self._probe.copy_peer(self._held("to", size), self._peer, self._peer.allocate(size, zeroed=False), size, 0)

    def set(self, value: int, count: int, *, width: int = 1, stream: int = 0) -> None:
        self._probe.set(self._held("to", width * count), value, width, count, stream)

    def flush_l2(self) -> None:
        words = self.flush_bytes // 4
        self._probe.set(self._held("flush", self.flush_bytes), value=0, width=4, count=words, stream=0)

    def allocate(self, size: int, *, cleared: bool = False) -> int:
        return int(self._probe.allocate(size, zeroed=cleared))

    def free(self, address: int) -> None:
        self._probe.free(address)

    def read_word(self, address: int) -> int:
        """A 32-bit word of device memory; waits for the GPU."""
        return int(self._probe.read_word(address))

    def stream(self) -> int:
        return int(self._probe.make_stream())

    def order(self, first: int, then: int) -> None:
        self._probe.order(first, then)

    def graph(self, body: Callable[[int], object]) -> int:
        stream = self._probe.make_stream()
        self._probe.begin_capture(stream)
        try:
            body(stream)
        finally:
            graph = int(self._probe.end_capture(stream))
        return graph

    def run_graph(self, graph: int, stream: int = 0) -> None:
        self._probe.launch_graph(graph, stream)

    def release(self) -> None:
        self.synchronize()
        for address in [*self._outgrown, *(address for address, _ in self._memory.values())]:
            self._probe.free(address)
        self._outgrown.clear()
        self._memory.clear()
        self._peer = None

    def timed_stream(self) -> int:
        """Handle of the stream that events are recorded in."""
        return self._stream

    def events(self, count: int) -> Sequence[Any]:
        while len(self._events) < count:
            self._events.append(self._probe.make_event())
        return self._events

    def record(self, event: Any) -> None:
        self._probe.record(event, self.timed_stream())

    def passed(self, event: Any) -> bool:
        return bool(self._probe.passed(event))

    def elapsed_ns(self, first: Any, second: Any) -> float:
        return float(self._probe.elapsed_ns(first, second))

    def hold(self, ns: int) -> None:
        if not self._can_hold:
            self.load_module(hold_ptx(*self._compute_capability()))
            self._can_hold = True
        self.launch(HOLD, block=(1, 1, 1), stream=self.timed_stream(), arguments=(ns,))

    def _compute_capability(self) -> tuple[int, int]:
        major, minor = DeviceAttribute.COMPUTE_CAPABILITY_MAJOR, DeviceAttribute.COMPUTE_CAPABILITY_MINOR
        return self.attribute(major), self.attribute(minor)

    def peak_memory(self, function: Callable[[], object]) -> int | None:
        return None

    def prepare_stamps(self, count: int) -> None:
        if not self._can_stamp and not self.why_no_stamps:
            try:
                self.load_module(clock_stamp_ptx(*self._compute_capability()))
                self._sms = self.attribute(DeviceAttribute.MULTIPROCESSOR_COUNT)
                self._can_stamp = True
            except CuptiError as e:
                self.why_no_stamps = e.message
        if self._can_stamp:
            ctypes.memset(self._held("stamps", STAMP_BYTES * count), 0, STAMP_BYTES * count)

    def stamp(self, index: int) -> None:
        if self._can_stamp:
            at = self._memory["stamps"][0] + STAMP_BYTES * index
            self.launch(CLOCK_STAMP, (self._sms, 1, 1), (1, 1, 1), stream=self.timed_stream(), arguments=(at,))

    def stamps(self, count: int) -> npt.NDArray[np.uint64]:
        if not self._can_stamp:
            return np.zeros((count, 2), np.uint64)
        written = (ctypes.c_uint64 * (2 * count)).from_address(self._memory["stamps"][0])
        return np.array(written, np.uint64).reshape(count, 2)

    def capture(self, function: Callable[[], object]) -> Callable[[], None]:
        with capturable(self._stream, function) as stream:
            graph = self._captured(handle_of(stream), function)
        self._captured_in.append(stream)
        return partial(self._probe.launch_graph, graph, self._stream)

    def _captured(self, stream: int, function: Callable[[], object]) -> int:
        """The graph of what `function` gives to the stream; a capture that fails is ended."""
        self.synchronize()
        try:
            self._probe.begin_capture(stream)
        except CuptiError as e:
            raise cannot_capture(e.message) from e
        try:
            function()
        except BaseException as e:
            try:
                self._probe.end_capture(stream)
            except CuptiError:  # the driver has given the capture up, so that is what the function met
                if isinstance(e, Exception):
                    raise cannot_capture(str(e).partition("\n")[0] or type(e).__name__) from e
            raise
        try:
            return int(self._probe.end_capture(stream))
        except CuptiError as e:
            raise cannot_capture(e.message) from e
