"""The simulated GPU as NVML would tell of it: answers as the module ``pynvml`` does, out of the simulated clocks."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cuptiprof.data.clock_state import ClockState
    from cuptiprof.sim.sim_clocks import SimClocks

_NOT_SUPPORTED, _TIMEOUT = 3, 10
_TEXTS = {3: "Not Supported", 4: "Insufficient Permissions", 10: "Timeout", 15: "GPU is lost", 999: "Unknown Error"}


class SimNvmlError(Exception):
    """``pynvml.NVMLError``: `value` is an nvmlReturn_t."""

    def __init__(self, value: int) -> None:
        super().__init__(_TEXTS.get(value, f"error {value}"))
        self.value = value


class SimNvml:
    """The functions of ``pynvml`` that are used here. What the model does not have is not supported, as on many a board.

    Attributes:
        errors: name of a function -> the nvmlReturn_t that it fails with.
        xids: events to come, in order.
        memory_used: bytes.
        ecc: errors of memory since the driver was loaded: corrected, uncorrected. remapped: rows of memory, by such errors.
    """

    NVMLError = SimNvmlError
    NVML_CLOCK_SM, NVML_CLOCK_MEM, NVML_TEMPERATURE_GPU, NVML_VOLATILE_ECC = 1, 2, 0, 0
    NVML_MEMORY_ERROR_TYPE_CORRECTED, NVML_MEMORY_ERROR_TYPE_UNCORRECTED = 0, 1
    NVML_PCIE_UTIL_TX_BYTES, NVML_PCIE_UTIL_RX_BYTES = 0, 1
    NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX, NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX = 138, 139
    NVML_PAGE_RETIREMENT_CAUSE_MULTIPLE_SINGLE_BIT_ECC_ERRORS, NVML_PAGE_RETIREMENT_CAUSE_DOUBLE_BIT_ECC_ERROR = 0, 1
    nvmlEventTypeXidCriticalError = 8

    def __init__(self, clocks: SimClocks) -> None:
        self._clocks = clocks
        self.errors: dict[str, int] = {}
        self.xids: list[int] = []
        self.memory_used = 0
        self.ecc = [0, 0]
        self.remapped = [0, 0]

    def __getattr__(self, name: str) -> Any:
        """Functions by NVML's names; AttributeError: none of the face's."""
        answer = _ANSWERS.get(name)
        if answer is None:
            raise AttributeError(name)

        def call(*arguments: Any) -> Any:
            if name in self.errors:
                raise SimNvmlError(self.errors[name])
            return answer(self, *arguments)

        return call

    def _state(self) -> ClockState:
        state = self._clocks.read()
        if state is None:
            raise SimNvmlError(999)
        return state

    def _clock(self, gpu: int, which: int) -> int:
        del gpu
        state = self._state()
        return round(state.sm_mhz if which == self.NVML_CLOCK_SM else state.memory_mhz)

    def _next_xid(self, events: Any, wait_ms: int) -> Any:
        del events, wait_ms
        if not self.xids:
            raise SimNvmlError(_TIMEOUT)
        return SimpleNamespace(device=0, eventData=self.xids.pop(0), eventType=self.nvmlEventTypeXidCriticalError)


def _unsupported(*arguments: Any) -> Any:
    del arguments
    raise SimNvmlError(_NOT_SUPPORTED)


_ANSWERS: dict[str, Any] = {
    "nvmlDeviceGetCount": lambda nvml: 1,
    "nvmlDeviceGetHandleByIndex": lambda nvml, index: index,
    "nvmlDeviceGetIndex": lambda nvml, gpu: gpu,
    "nvmlDeviceGetUUID": lambda nvml, gpu: "",
    "nvmlDeviceGetPowerUsage": lambda nvml, gpu: round(nvml._state().power_w * 1000),
    "nvmlDeviceGetClockInfo": SimNvml._clock,
    "nvmlDeviceGetTemperature": lambda nvml, gpu, which: round(nvml._state().temperature),
    "nvmlDeviceGetMemoryInfo": lambda nvml, gpu: SimpleNamespace(used=nvml.memory_used),
    "nvmlDeviceGetPerformanceState": lambda nvml, gpu: 0,
    "nvmlDeviceGetCurrentClocksThrottleReasons": lambda nvml, gpu: nvml._state().reasons,
    "nvmlDeviceGetTotalEccErrors": lambda nvml, gpu, kind, counter: nvml.ecc[kind],
    "nvmlEventSetCreate": lambda nvml: object(),
    "nvmlEventSetFree": lambda nvml, events: None,
    "nvmlDeviceRegisterEvents": lambda nvml, gpu, kinds, events: None,
    "nvmlEventSetWait_v2": SimNvml._next_xid,
    "nvmlDeviceGetFanSpeed": _unsupported,
    "nvmlDeviceGetUtilizationRates": _unsupported,
    "nvmlDeviceGetPcieThroughput": _unsupported,
    "nvmlDeviceGetRemappedRows": lambda nvml, gpu: (*nvml.remapped, 0, 0),
    "nvmlDeviceGetRetiredPages": _unsupported,
    "nvmlDeviceGetEnforcedPowerLimit": _unsupported,
    "nvmlDeviceGetCurrPcieLinkGeneration": _unsupported,
    "nvmlDeviceGetCurrPcieLinkWidth": _unsupported,
    "nvmlDeviceGetFieldValues": _unsupported,
}
