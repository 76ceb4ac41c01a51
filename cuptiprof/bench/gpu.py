"""The GPU as the harness uses it: its clock, waiting, cold caches, events, graphs. Through PyTorch, the driver, or simulated."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any, Protocol

from cuptiprof import _core
from cuptiprof.bench.clocks import ClockReader, NoClocks, nvml_clocks
from cuptiprof.devices import CudaDevice, Device, ReplayDevice, SimulatedDevice, open_device
from cuptiprof.errors import BenchError, CuptiprofError
from cuptiprof.sim.device import Flag, Op

# CUdevice_attribute
_CLOCK_KHZ, _SMS, _PCI_BUS, _PCI_DEVICE, _MEMORY_KHZ, _BUS_BITS, _L2, _PCI_DOMAIN, _MAJOR, _MINOR = (
    13, 16, 33, 34, 36, 37, 38, 50, 75, 76,
)  # fmt: skip

FLUSH_FACTOR = 2
"""What is written to make the L2 cold, in sizes of the L2: one would leave the lines that its replacement keeps."""
DEFAULT_L2 = 128 << 20  # of a chip that does not say: as large as any so far


class Gpu(Protocol):
    """One GPU. Work goes to the stream that is current for the function that is measured."""

    device: Device | None
    """for ``profile(device=...)``; None: there is no GPU"""
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

    def record(self) -> Any:
        """Enqueue an event."""

    def elapsed_ns(self, first: Any, second: Any) -> float:
        """Time between two events that have passed."""

    def capture(self, function: Callable[[], object]) -> Callable[[], None]:
        """Call `function` once under capture; what replays it.

        Raises:
            BenchError: there is no capturing here, or the function cannot be captured.
        """

    def attributes(self) -> dict[str, int]:
        """ "sms", "clock_khz", "memory_khz", "bus_bits", "major", "minor"; empty of the simulated one."""


class _CudaGpu:
    """What PyTorch's and the driver's way share."""

    def __init__(self, device: Device, ordinal: int) -> None:
        self.device: Device | None = device
        self._probe = _core.ProbeDevice(device.library, ordinal)
        attribute = self._probe.attribute
        self.chip = _core.chip_name(device.library, ordinal)
        self.flush_bytes = FLUSH_FACTOR * (attribute(_L2) or DEFAULT_L2)
        pci = f"{attribute(_PCI_DOMAIN):08X}:{attribute(_PCI_BUS):02X}:{attribute(_PCI_DEVICE):02X}.0"
        self.clocks: ClockReader = nvml_clocks(pci)
        self.now = time.perf_counter_ns

    def attributes(self) -> dict[str, int]:
        ids = {"sms": _SMS, "clock_khz": _CLOCK_KHZ, "memory_khz": _MEMORY_KHZ, "bus_bits": _BUS_BITS, "major": _MAJOR, "minor": _MINOR}  # fmt: skip
        return {name: self._probe.attribute(i) for name, i in ids.items()}


class TorchGpu(_CudaGpu):
    """PyTorch's current device and stream."""

    def __init__(self, device: Device) -> None:
        import torch

        self._torch: Any = torch
        super().__init__(device, int(torch.cuda.current_device()))
        self._flush: Any = None
        self.synchronize = torch.cuda.synchronize

    def flush_l2(self) -> None:
        if self._flush is None:
            self._flush = self._torch.empty(self.flush_bytes, dtype=self._torch.uint8, device="cuda")
        self._flush.zero_()

    def record(self) -> Any:
        event = self._torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def elapsed_ns(self, first: Any, second: Any) -> float:
        return float(first.elapsed_time(second)) * 1e6

    def capture(self, function: Callable[[], object]) -> Callable[[], None]:
        cuda = self._torch.cuda
        if cuda.is_current_stream_capturing():
            raise BenchError("a graph is being captured already", hint="measure outside of torch.cuda.graph")
        graph = cuda.CUDAGraph()
        self.synchronize()
        try:
            with cuda.graph(graph):
                function()
        except RuntimeError as e:
            raise BenchError(
                f"the function cannot be captured into a CUDA graph: {str(e).splitlines()[0]}",
                hint='a function that synchronises or captures itself needs strategy="kernel" or "event"',
            ) from e
        replay: Callable[[], None] = graph.replay
        return replay


class DriverGpu(_CudaGpu):
    """Device 0 where PyTorch is not in use: for CuPy, JAX and the like. No events or graphs: whose stream is not known."""

    def __init__(self, device: Device) -> None:
        super().__init__(device, 0)
        self._flush = 0
        self.synchronize = self._probe.synchronize

    def flush_l2(self) -> None:
        if not self._flush:
            self._flush = self._probe.allocate(self.flush_bytes, False)
        self._probe.set(self._flush, 0, 4, self.flush_bytes // 4, 0)

    def record(self) -> Any:
        raise _needs_torch("events")

    def elapsed_ns(self, first: Any, second: Any) -> float:
        raise _needs_torch("events")

    def capture(self, function: Callable[[], object]) -> Callable[[], None]:
        raise _needs_torch("graphs")


class HostGpu:
    """No GPU at all: functions of the host alone, strategies "cpu", "wall" and "manual"."""

    device: Device | None = None
    chip = ""
    flush_bytes = 0

    def __init__(self) -> None:
        self.clocks: ClockReader = NoClocks("")
        self.now = time.perf_counter_ns

    def synchronize(self) -> None:
        pass

    def flush_l2(self) -> None:
        raise _no_gpu("a cold L2")

    def record(self) -> Any:
        raise _no_gpu("events")

    def elapsed_ns(self, first: Any, second: Any) -> float:
        raise _no_gpu("events")

    def capture(self, function: Callable[[], object]) -> Callable[[], None]:
        raise _no_gpu("graphs")

    def attributes(self) -> dict[str, int]:
        return {}


class SimGpu:
    """The simulated device. Its clock is what the device was opened with; the harness opens a virtual one."""

    def __init__(self, device: SimulatedDevice) -> None:
        self.device: Device | None = device
        self.chip = device.chip
        self.clocks: ClockReader = device.clocks
        self.flush_bytes = FLUSH_FACTOR * DEFAULT_L2
        self._sim = device.sim
        self._events = self._graphs = 0
        self.now = device.sim.now if device.virtual_clock else time.perf_counter_ns

    def synchronize(self) -> None:
        self._sim.synchronize()

    def flush_l2(self) -> None:
        self._sim.call(Op.MEMSET, bytes=self.flush_bytes, flags=Flag.ASYNC)

    def record(self) -> Any:
        self._events = self._events % 65_536 + 1  # the stand-in keeps each it has seen
        self._sim.call(Op.EVENT_RECORD, event=self._events)
        return self._events

    def elapsed_ns(self, first: Any, second: Any) -> float:
        return float(self._sim.event_time(second) - self._sim.event_time(first))

    def capture(self, function: Callable[[], object]) -> Callable[[], None]:
        self._graphs += 1
        graph = 1_000_000 + self._graphs  # apart from those that a script numbers itself
        self._sim.call(Op.GRAPH_BEGIN_CAPTURE, graph_id=graph)
        try:
            function()
        except CuptiprofError as e:
            raise BenchError(
                f"the function cannot be captured into a CUDA graph: {e.message}",
                hint='a function that synchronises or captures itself needs strategy="kernel" or "event"',
            ) from e
        finally:
            with contextlib.suppress(CuptiprofError):
                self._sim.call(Op.GRAPH_END_CAPTURE, graph_id=graph)
        return self._sim.prepare(self._sim.ops(1, Op.GRAPH_LAUNCH, graph_id=graph))

    def attributes(self) -> dict[str, int]:
        return {}


@contextlib.contextmanager
def open_gpu(device: str | Device | None) -> Iterator[Gpu]:
    """The GPU to measure on; see :func:`cuptiprof.devices.open_device`. "host": none.

    Raises:
        DeviceError: there is none.
        BenchError: a recorded trace was given.
    """
    if device == "host":
        yield HostGpu()
        return
    opened = device if isinstance(device, Device) else _open(device)
    if isinstance(opened, ReplayDevice):
        raise BenchError("a recorded trace has no function to measure", hint='use device="sim"')
    if isinstance(opened, SimulatedDevice):
        with opened.hold():
            yield SimGpu(opened)
        return
    assert isinstance(opened, CudaDevice)
    torch: Any = sys.modules.get("torch")
    uses_torch = torch is not None and torch.cuda.is_available()
    yield TorchGpu(opened) if uses_torch else DriverGpu(opened)


def _open(spec: str | None) -> Device:
    return open_device(spec, virtual_clock=True)


def _no_gpu(what: str) -> BenchError:
    return BenchError(f'device="host" has no GPU, so no {what}', hint='strategy="cpu" or "wall"')


def _needs_torch(what: str) -> BenchError:
    return BenchError(
        f"{what} need PyTorch, which this program does not use",
        hint='strategy="kernel" measures any program\'s GPU work',
    )
