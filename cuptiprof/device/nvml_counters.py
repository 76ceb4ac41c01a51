"""Counters of GPUs as NVML reads them, those left out that a board does not have. Units are those of nvml.h (NVML 13)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

_KIB = 1024.0  # NVLink's fields are in KiB; nvmlDeviceGetPcieThroughput's KB/s are taken to be the same
_LOST = 15  # nvmlReturn_t: NVML_ERROR_GPU_IS_LOST
_NEVER = {
    2,
    3,
    4,
    13,
}  # invalid argument, not supported, no permission, no such function: the next reading would say the same
_ALL_LINKS = 0xFFFFFFFF
_NOT_AVAILABLE = (
    0xFFFFFFFF,
    0xFFFFFFFFFFFFFFFF,
)  # NVML_VALUE_NOT_AVAILABLE, -1, as the unsigned integers that are read
_HELD_FIELDS = {
    "power_cap_time": 74,
    "sync_boost_time": 76,
    "software_thermal_time": 269,
    "hardware_thermal_time": 270,
    "power_brake_time": 271,
}
"""NVML_FI_DEV_CLOCKS_EVENT_REASON_* of nvml.h: ns in all. The binding has not had names for them for long."""
_UNKNOWN_STATE = 32  # NVML_PSTATE_UNKNOWN

Reading = tuple[str, float]


class NvmlGpu:
    """One GPU's counters.

    Attributes:
        handle: NVML's of the GPU.
        uuid: as NVML has it; "": it did not say.
        missed: readings that failed and may come again.
        refused: counters that this board or user does not get -> NVML's word for why.
    """

    def __init__(self, nvml: Any, index: int) -> None:
        """Raises: nvml.NVMLError: there is no such GPU, or not for this user."""
        self._nvml = nvml
        self._gpu = self.handle = nvml.nvmlDeviceGetHandleByIndex(index)
        self.index = index
        self.missed = 0
        self.refused: dict[str, str] = {}
        self.is_lost = False
        self.uuid = ""
        self._fields = dict(_HELD_FIELDS)  # without those that this driver does not count
        self._held_ns: dict[str, tuple[int, int]] = {}  # ns and what was counted at the reading before
        self._sent: dict[str, tuple[int, float]] = {}  # NVLink: ns and bytes at the reading before
        for _, uuid in self._tried("uuid", lambda: [("uuid", nvml.nvmlDeviceGetUUID(self._gpu))]):
            self.uuid = uuid.decode() if isinstance(uuid, bytes) else str(uuid)

    def read(self, now: int) -> Iterator[Reading]:
        """What takes no time to read, at `now` (ns)."""
        nvml, gpu = self._nvml, self._gpu
        ways: tuple[tuple[str, Callable[[], Any]], ...] = (
            ("power", lambda: [("power", _known(nvml.nvmlDeviceGetPowerUsage(gpu)) / 1000)]),  # from mW
            ("sm_clock", lambda: [("sm_clock", nvml.nvmlDeviceGetClockInfo(gpu, nvml.NVML_CLOCK_SM))]),
            ("memory_clock", lambda: [("memory_clock", nvml.nvmlDeviceGetClockInfo(gpu, nvml.NVML_CLOCK_MEM))]),
            ("temperature", lambda: [("temperature", nvml.nvmlDeviceGetTemperature(gpu, nvml.NVML_TEMPERATURE_GPU))]),
            ("fan", lambda: [("fan", nvml.nvmlDeviceGetFanSpeed(gpu))]),
            ("utilization", self._utilization),
            ("memory_used", lambda: [("memory_used", nvml.nvmlDeviceGetMemoryInfo(gpu).used)]),
            ("performance_state", self._performance_state),
            # Its newer name, nvmlDeviceGetCurrentClocksEventReasons, is missing from drivers before 535.
            ("clock_reasons", lambda: [("clock_reasons", nvml.nvmlDeviceGetCurrentClocksThrottleReasons(gpu))]),
            ("ecc_corrected", lambda: [("ecc_corrected", self._ecc(nvml.NVML_MEMORY_ERROR_TYPE_CORRECTED))]),
            ("ecc_uncorrected", lambda: [("ecc_uncorrected", self._ecc(nvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED))]),
            ("nvlink", lambda: self._nvlink(now)),
            ("held", lambda: self._held(now)),
        )
        for name, way in ways:
            yield from self._tried(name, way)

    def read_slowly(self) -> Iterator[Reading]:
        """What asks the driver for longer, and what crosses PCIe, which NVML measures for 20 ms at each of the two calls."""
        nvml, gpu = self._nvml, self._gpu
        ways: tuple[tuple[str, Callable[[], Any]], ...] = (
            ("power_limit", lambda: [("power_limit", _known(nvml.nvmlDeviceGetEnforcedPowerLimit(gpu)) / 1000)]),
            ("pcie_generation", lambda: [("pcie_generation", nvml.nvmlDeviceGetCurrPcieLinkGeneration(gpu))]),
            ("pcie_width", lambda: [("pcie_width", nvml.nvmlDeviceGetCurrPcieLinkWidth(gpu))]),
            ("remapped_rows", lambda: [("remapped_rows", sum(nvml.nvmlDeviceGetRemappedRows(gpu)[:2]))]),
            ("retired_pages", self._retired_pages),
            ("pcie_sent", lambda: self._pcie("pcie_sent", nvml.NVML_PCIE_UTIL_TX_BYTES)),
            ("pcie_received", lambda: self._pcie("pcie_received", nvml.NVML_PCIE_UTIL_RX_BYTES)),
        )
        for name, way in ways:
            yield from self._tried(name, way)

    def _pcie(self, name: str, way: int) -> list[Reading]:
        return [(name, _known(self._nvml.nvmlDeviceGetPcieThroughput(self._gpu, way)) * _KIB)]

    def _retired_pages(self) -> list[Reading]:
        nvml = self._nvml
        causes = (nvml.NVML_PAGE_RETIREMENT_CAUSE_MULTIPLE_SINGLE_BIT_ECC_ERRORS,
                  nvml.NVML_PAGE_RETIREMENT_CAUSE_DOUBLE_BIT_ECC_ERROR)  # fmt: skip
        return [("retired_pages", sum(len(nvml.nvmlDeviceGetRetiredPages(self._gpu, cause)) for cause in causes))]

    def _performance_state(self) -> list[Reading]:
        state = self._nvml.nvmlDeviceGetPerformanceState(self._gpu)
        return [] if state == _UNKNOWN_STATE else [("performance_state", state)]

    def _tried(self, name: str, way: Callable[[], Any]) -> list[tuple[str, Any]]:
        """What `way` reads; nothing where NVML refuses, whatever else goes wrong included: a program must not hear of it."""
        if self.is_lost or name in self.refused:
            return []
        try:
            return [(name, _known(value)) for name, value in way()]
        except self._nvml.NVMLError as e:
            code = getattr(e, "value", 0)
            if code == _LOST:
                self.is_lost = True
                self.refused["everything"] = str(e)
            elif code in _NEVER:
                self.refused[name] = str(e)
            else:
                self.missed += 1
        except AttributeError as e:  # the binding or the driver's library is older than the call
            self.refused[name] = str(e)
        except Exception:
            self.missed += 1
        return []

    def _utilization(self) -> list[Reading]:
        rates = self._nvml.nvmlDeviceGetUtilizationRates(self._gpu)
        return [("gpu_utilization", rates.gpu), ("memory_utilization", rates.memory)]

    def _held(self, now: int) -> list[Reading]:
        """Percent of the time since the reading before."""
        names = list(self._fields)
        values = self._nvml.nvmlDeviceGetFieldValues(self._gpu, list(self._fields.values())) if names else []
        out: list[Reading] = []
        for name, value in zip(names, values, strict=True):
            if value.nvmlReturn in _NEVER:
                del self._fields[name]
            elif value.nvmlReturn:
                self.missed += 1
            elif (total := int(value.value.ullVal)) not in _NOT_AVAILABLE:
                before, counted = self._held_ns.get(name, (now, total))
                if now > before and total >= counted:
                    out.append((name, min(100.0 * (total - counted) / (now - before), 100.0)))
                self._held_ns[name] = (now, total)
        return out

    def _ecc(self, kind: int) -> int:
        return int(self._nvml.nvmlDeviceGetTotalEccErrors(self._gpu, kind, self._nvml.NVML_VOLATILE_ECC))

    def _nvlink(self, now: int) -> list[Reading]:
        nvml = self._nvml
        fields = (("nvlink_sent", nvml.NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX),
                  ("nvlink_received", nvml.NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX))  # fmt: skip
        values = nvml.nvmlDeviceGetFieldValues(self._gpu, [(field, _ALL_LINKS) for _, field in fields])
        out: list[Reading] = []
        for (name, _), value in zip(fields, values, strict=True):
            if value.nvmlReturn:
                raise nvml.NVMLError(value.nvmlReturn)
            total = float(value.value.ullVal) * _KIB
            before, bytes_before = self._sent.get(name, (now, total))
            if now > before and total >= bytes_before:
                out.append((name, (total - bytes_before) * 1e9 / (now - before)))
            self._sent[name] = (now, total)
        return out


def _known(value: Any) -> Any:
    """Raises: ValueError: NVML does not know it."""
    if value in _NOT_AVAILABLE:
        raise ValueError("NVML_VALUE_NOT_AVAILABLE")
    return value


def nvml_gpus(nvml: Any) -> list[NvmlGpu]:
    """Those of the machine that this user may read; none where NVML does not even count them."""
    try:
        count = int(nvml.nvmlDeviceGetCount())
    except nvml.NVMLError:
        return []
    found = []
    for index in range(count):
        try:
            found.append(NvmlGpu(nvml, index))
        except nvml.NVMLError:  # a GPU of others, or one that fell off the bus
            continue
    return found
