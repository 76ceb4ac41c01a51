"""Which GPU the harness measures on: the host alone, the simulated one, PyTorch's or the driver's."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from cuptiprof.data.clock_state import ClockReader, NoClocks
from cuptiprof.device.devices import CudaDevice, Device, ReplayDevice, SimulatedDevice, open_device
from cuptiprof.device.driver import DeviceAttribute, Driver
from cuptiprof.device.driver_gpu import DriverGpu
from cuptiprof.device.gpu import Meter
from cuptiprof.device.sim_gpu import SimGpu
from cuptiprof.device.streams import handle_of
from cuptiprof.device.torch_gpu import TorchGpu
from cuptiprof.errors import BenchError


@contextlib.contextmanager
def open_gpu(device: str | Device | None, stream: object = None) -> Iterator[Meter]:
    """The GPU to measure on; see :func:`cuptiprof.device.devices.open_device`. "host": none.

    Args:
        stream: that the functions work in; None: the current one of PyTorch or CuPy, else the default one.

    Raises:
        DeviceError: there is none.
        BenchError: a recorded trace was given, or something that is no stream.
    """
    handle = None if stream is None else handle_of(stream)
    if device == "host":
        yield HostGpu()
        return
    opened = device if isinstance(device, Device) else _open(device)
    if isinstance(opened, ReplayDevice):
        raise BenchError("a recorded trace has no function to measure", hint='use device="sim"')
    if isinstance(opened, SimulatedDevice):
        with opened.hold():
            yield SimGpu(opened, handle or 0)
        return
    assert isinstance(opened, CudaDevice)
    torch: Any = sys.modules.get("torch")
    uses_torch = torch is not None and torch.cuda.is_available()
    if uses_torch and handle is None:
        yield TorchGpu(opened)
    else:
        yield DriverGpu(opened, Driver().current_device(), stream=handle)


def _open(spec: str | None) -> Device:
    return open_device(spec, virtual_clock=True)


class HostGpu:
    """``device="host"``, no GPU at all: for strategies "cpu", "wall" and "manual"."""

    device: Device | None = None
    ordinal = 0
    chip = ""
    flush_bytes = 0
    why_no_stamps = ""

    def __init__(self) -> None:
        self.clocks: ClockReader = NoClocks("")
        self.now: Callable[[], int] = time.perf_counter_ns
        self.synchronize: Callable[[], None] = lambda: None

    def attribute(self, which: DeviceAttribute) -> int:
        raise _no_gpu("attributes")

    def pause(self, seconds: float) -> None:
        time.sleep(seconds)

    def flush_l2(self) -> None:
        raise _no_gpu("a cold L2")

    def events(self, count: int) -> Sequence[Any]:
        raise _no_gpu("events")

    def record(self, event: Any) -> None:
        raise _no_gpu("events")

    def elapsed_ns(self, first: Any, second: Any) -> float:
        raise _no_gpu("events")

    def passed(self, event: Any) -> bool:
        raise _no_gpu("events")

    def hold(self, ns: int) -> None:
        raise _no_gpu("streams")

    def peak_memory(self, function: Callable[[], object]) -> int | None:
        return None

    def prepare_stamps(self, count: int) -> None:
        raise _no_gpu("clocks")

    def stamp(self, index: int) -> None:
        raise _no_gpu("clocks")

    def stamps(self, count: int) -> npt.NDArray[np.uint64]:
        raise _no_gpu("clocks")

    def capture(self, function: Callable[[], object]) -> Callable[[], None]:
        raise _no_gpu("graphs")


def _no_gpu(what: str) -> BenchError:
    return BenchError(f'device="host" has no GPU, so no {what}', hint='strategy="cpu" or "wall"')
