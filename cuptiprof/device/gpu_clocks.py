"""The clocks of a GPU as NVML reads and locks them, and the energy that it has used."""

from __future__ import annotations

import contextlib
import os
from typing import Any

from cuptiprof.data.clock_state import ClockReader, ClockState, ClockTarget, NoClocks, cannot_lock
from cuptiprof.device.nvml import load_nvml
from cuptiprof.errors import BenchError, DeviceError

_LOCK_HINTS = {  # nvmlReturn_t
    3: "NVML locks clocks of Volta and later, and not of a part of a GPU (MIG) or in most virtual machines",
    4: "it takes root: run as root, or have an administrator set `nvidia-smi -lgc MHZ` and leave lock_clocks= out",
}


class NvmlClocks:
    """NVML's readings of one GPU.

    Attributes:
        why_not: what NVML answered when it gave no reading; "": it gave one.
    """

    why_not = ""

    def __init__(self, nvml: Any, handle: Any) -> None:
        self._nvml, self._handle = nvml, handle

    def read(self) -> ClockState | None:
        nvml, gpu = self._nvml, self._handle
        try:
            sm = nvml.nvmlDeviceGetClockInfo(gpu, nvml.NVML_CLOCK_SM)
            reasons = nvml.nvmlDeviceGetCurrentClocksThrottleReasons(gpu)
        except nvml.NVMLError as e:
            self.why_not = f"NVML: {e}"
            return None
        memory = temperature = power = 0.0
        with contextlib.suppress(nvml.NVMLError):  # not every board tells these
            memory = nvml.nvmlDeviceGetClockInfo(gpu, nvml.NVML_CLOCK_MEM)
            temperature = nvml.nvmlDeviceGetTemperature(gpu, nvml.NVML_TEMPERATURE_GPU)
            power = nvml.nvmlDeviceGetPowerUsage(gpu) / 1000  # from mW
        return ClockState(sm, memory, temperature, power, reasons)

    def others(self) -> list[int]:
        try:
            running = self._nvml.nvmlDeviceGetComputeRunningProcesses(self._handle)
        except self._nvml.NVMLError:
            return []
        pids = {int(p.pid) for p in running}
        if len(pids) == 1:
            return []  # this one: in a container NVML has other process IDs than the program knows
        return sorted(pids - {os.getpid()})

    def lock(self, target: ClockTarget) -> None:
        nvml, gpu = self._nvml, self._handle
        try:
            if target == "base":
                mhz = nvml.NVML_CLOCK_LIMIT_ID_TDP
            else:
                mhz = nvml.nvmlDeviceGetMaxClockInfo(gpu, nvml.NVML_CLOCK_SM) if target == "max" else target
            nvml.nvmlDeviceSetGpuLockedClocks(gpu, mhz, mhz)
        except nvml.NVMLError as e:
            raise cannot_lock(f"NVML: {e}", _LOCK_HINTS.get(e.value, "leave lock_clocks= out")) from None

    def unlock(self) -> None:
        try:
            self._nvml.nvmlDeviceResetGpuLockedClocks(self._handle)
        except self._nvml.NVMLError as e:
            raise BenchError(f"the clocks stay locked: NVML: {e}", hint="`nvidia-smi -rgc` resets them") from None

    def energy_j(self) -> float | None:
        try:
            return float(self._nvml.nvmlDeviceGetTotalEnergyConsumption(self._handle)) / 1000  # from mJ
        except self._nvml.NVMLError as e:
            self.why_not = f"NVML: {e}"
            return None


def nvml_clocks(pci_bus_id: str) -> ClockReader:
    """The reader of the GPU at this PCI address ("00000000:3B:00.0")."""
    try:
        nvml = load_nvml()
    except DeviceError as e:
        return NoClocks(e.message)
    try:
        return NvmlClocks(nvml, nvml.nvmlDeviceGetHandleByPciBusId(pci_bus_id.encode()))
    except nvml.NVMLError as e:
        return NoClocks(f"NVML: {e}")
