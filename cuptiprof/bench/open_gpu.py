"""Which GPU the harness measures on: the host alone, the simulated one, PyTorch's or the driver's."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from typing import Any

from cuptiprof.bench.host_gpu import HostGpu
from cuptiprof.device.devices import CudaDevice, Device, ReplayDevice, SimulatedDevice, open_device
from cuptiprof.device.driver import Driver
from cuptiprof.device.driver_gpu import DriverGpu
from cuptiprof.device.gpu import Meter
from cuptiprof.device.sim_gpu import SimGpu
from cuptiprof.device.torch_gpu import TorchGpu
from cuptiprof.errors import BenchError


@contextlib.contextmanager
def open_gpu(device: str | Device | None) -> Iterator[Meter]:
    """The GPU to measure on; see :func:`cuptiprof.device.devices.open_device`. "host": none.

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
    if uses_torch:
        yield TorchGpu(opened)
    else:
        yield DriverGpu(opened, Driver().current_device())


def _open(spec: str | None) -> Device:
    return open_device(spec, virtual_clock=True)
