"""A real GPU through the driver."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from cuptiprof import _core
from cuptiprof.bench.gpu import DEFAULT_L2, FLUSH_FACTOR
from cuptiprof.data.clock_state import ClockReader
from cuptiprof.device.devices import Device
from cuptiprof.device.driver import DeviceAttribute
from cuptiprof.device.gpu_clocks import nvml_clocks
from cuptiprof.errors import BenchError


class CudaGpu:
    """What PyTorch's and the driver's way share."""

    def __init__(self, device: Device, ordinal: int) -> None:
        self.device: Device | None = device
        self.ordinal = ordinal
        self._probe = _core.ProbeDevice(device.library, ordinal, with_probes=False)
        attribute = self._probe.attribute
        self.chip = _core.chip_name(device.library, ordinal)
        self.flush_bytes = FLUSH_FACTOR * (attribute(DeviceAttribute.L2_CACHE_SIZE) or DEFAULT_L2)
        pci = "{:08X}:{:02X}:{:02X}.0".format(
            *map(attribute, (DeviceAttribute.PCI_DOMAIN_ID, DeviceAttribute.PCI_BUS_ID, DeviceAttribute.PCI_DEVICE_ID))
        )
        self.clocks: ClockReader = nvml_clocks(pci)
        self.now = time.perf_counter_ns

    def attribute(self, which: DeviceAttribute) -> int:
        return self._probe.attribute(which)


class DriverGpu(CudaGpu):
    """Device 0 where PyTorch is not in use: for CuPy, JAX and the like. No events or graphs: whose stream is not known."""

    def __init__(self, device: Device) -> None:
        super().__init__(device, 0)
        self._flush = 0
        self.synchronize = self._probe.synchronize

    def flush_l2(self) -> None:
        if not self._flush:
            self._flush = self._probe.allocate(self.flush_bytes, False)
        self._probe.set(self._flush, 0, 4, self.flush_bytes // 4, 0)

    def events(self, count: int) -> Sequence[Any]:
        raise _needs_torch("events")

    def record(self, event: Any) -> None:
        raise _needs_torch("events")

    def elapsed_ns(self, first: Any, second: Any) -> float:
        raise _needs_torch("events")

    def capture(self, function: Callable[[], object]) -> Callable[[], None]:
        raise _needs_torch("graphs")


def _needs_torch(what: str) -> BenchError:
    return BenchError(
        f"{what} need PyTorch, which this program does not use",
        hint='strategy="kernel" measures any program\'s GPU work',
    )
