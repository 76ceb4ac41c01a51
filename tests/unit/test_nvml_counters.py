"""NVML's counters against a module that answers as pynvml does, each of whose functions can fail."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from cuptiprof.device.nvml_counters import NvmlGpu, nvml_gpus
from cuptiprof.device.nvml_events import NvmlEvents

NOT_SUPPORTED, NO_PERMISSION, TIMEOUT, NOT_FOUND, LOST, UNKNOWN = 3, 4, 10, 13, 15, 999


class FakeError(Exception):
    def __init__(self, value: int) -> None:
        super().__init__(f"nvml {value}")
        self.value = value


class FakeNvml:
    """Two GPUs. `errors`: function -> code; `old`: functions that the binding lacks."""

    NVMLError = FakeError
    NVML_CLOCK_SM, NVML_CLOCK_MEM, NVML_TEMPERATURE_GPU, NVML_VOLATILE_ECC = 1, 2, 0, 0
    NVML_MEMORY_ERROR_TYPE_CORRECTED, NVML_MEMORY_ERROR_TYPE_UNCORRECTED = 0, 1
    NVML_PCIE_UTIL_TX_BYTES, NVML_PCIE_UTIL_RX_BYTES = 0, 1
    NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX, NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX = 138, 139
    NVML_PAGE_RETIREMENT_CAUSE_MULTIPLE_SINGLE_BIT_ECC_ERRORS, NVML_PAGE_RETIREMENT_CAUSE_DOUBLE_BIT_ECC_ERROR = 0, 1
    nvmlEventTypeXidCriticalError = 8

    def __init__(self) -> None:
        self.errors: dict[str, int] = {}
        self.old: set[str] = set()
        self.raises: dict[str, Exception] = {}
        self.kib = 1000
        self.held: dict[int, int] = {}
        self.link_error = 0
        self.xids = [79, 48]
        self.silent: dict[int, int] = {}
        self.registered: list[int] = []
        self.freed = 0

    def __getattr__(self, name: str) -> Any:
        if name not in ANSWERS or name in self.old:
            raise AttributeError(name)

        def call(*arguments: Any) -> Any:
            if name in self.errors:
                raise FakeError(self.errors[name])
            if name in self.raises:
                raise self.raises[name]
            return ANSWERS[name](self, *arguments)

        return call


def _wait(nvml: FakeNvml, events: Any, milliseconds: int) -> Any:
    assert 0 < milliseconds <= 100, "it must wait, but not for long"
    if not nvml.xids:
        raise FakeError(TIMEOUT)
    return SimpleNamespace(device=1, eventData=nvml.xids.pop(0))


def _register(nvml: FakeNvml, gpu: int, kinds: int, events: Any) -> None:
    assert kinds == 8
    if gpu in nvml.silent:
        raise FakeError(nvml.silent[gpu])
    nvml.registered.append(gpu)


def _fields(nvml: FakeNvml, gpu: int, fields: Any) -> Any:
    if isinstance(fields[0], int):
        return [SimpleNamespace(nvmlReturn=NOT_SUPPORTED if field not in nvml.held else nvml.link_error,
                                value=SimpleNamespace(ullVal=nvml.held.get(field, 0))) for field in fields]  # fmt: skip
    assert [scope for _, scope in fields] == [0xFFFFFFFF] * 2, "all links together"
    return [SimpleNamespace(nvmlReturn=nvml.link_error, value=SimpleNamespace(ullVal=nvml.kib * (field - 137)))
            for field, _ in fields]  # fmt: skip


def _free(nvml: FakeNvml, events: Any) -> None:
    nvml.freed += 1


ANSWERS: dict[str, Any] = {
    "nvmlDeviceGetCount": lambda n: 2,
    "nvmlDeviceGetHandleByIndex": lambda n, i: i,
    "nvmlDeviceGetEnforcedPowerLimit": lambda n, g: 700_000,
    "nvmlDeviceGetCurrPcieLinkGeneration": lambda n, g: 5,
    "nvmlDeviceGetCurrPcieLinkWidth": lambda n, g: 16,
    "nvmlDeviceGetUUID": lambda n, g: f"GPU-{g}",
    "nvmlDeviceGetPowerUsage": lambda n, g: 312_500,
    "nvmlDeviceGetClockInfo": lambda n, g, which: {1: 1755, 2: 2619}[which],
    "nvmlDeviceGetTemperature": lambda n, g, which: 61,
    "nvmlDeviceGetFanSpeed": lambda n, g: 40,
    "nvmlDeviceGetUtilizationRates": lambda n, g: SimpleNamespace(gpu=97, memory=31),
    "nvmlDeviceGetMemoryInfo": lambda n, g: SimpleNamespace(used=5 << 30),
    "nvmlDeviceGetPerformanceState": lambda n, g: 2,
    "nvmlDeviceGetCurrentClocksThrottleReasons": lambda n, g: 0x40,
    "nvmlDeviceGetTotalEccErrors": lambda n, g, kind, counter: (7, 1)[kind],
    "nvmlDeviceGetFieldValues": _fields,
    "nvmlDeviceGetPcieThroughput": lambda n, g, which: (10, 20)[which],
    "nvmlEventSetCreate": lambda n: "events",
    "nvmlEventSetFree": _free,
    "nvmlDeviceRegisterEvents": _register,
    "nvmlDeviceGetIndex": lambda n, g: g,
    "nvmlDeviceGetRemappedRows": lambda n, g: (3, 1, 1, 0),
    "nvmlDeviceGetRetiredPages": lambda n, g, cause: ([10, 11], [12])[cause],
    "nvmlEventSetWait_v2": _wait,
}
WHOLE = {
    "power": 312.5, "sm_clock": 1755, "memory_clock": 2619, "temperature": 61, "fan": 40, "gpu_utilization": 97, "memory_utilization": 31,
    "memory_used": 5 << 30, "performance_state": 2, "clock_reasons": 0x40, "ecc_corrected": 7, "ecc_uncorrected": 1,
}  # fmt: skip
LEFT_OUT = {
    "nvmlDeviceGetPowerUsage": {"power"},
    "nvmlDeviceGetClockInfo": {"sm_clock", "memory_clock"},
    "nvmlDeviceGetTemperature": {"temperature"},
    "nvmlDeviceGetFanSpeed": {"fan"},
    "nvmlDeviceGetUtilizationRates": {"gpu_utilization", "memory_utilization"},
    "nvmlDeviceGetMemoryInfo": {"memory_used"},
    "nvmlDeviceGetPerformanceState": {"performance_state"},
    "nvmlDeviceGetCurrentClocksThrottleReasons": {"clock_reasons"},
    "nvmlDeviceGetTotalEccErrors": {"ecc_corrected", "ecc_uncorrected"},
    "nvmlDeviceGetFieldValues": {"nvlink_sent", "nvlink_received"},
    "nvmlDeviceGetUUID": set(),
}


def second_reading(nvml: FakeNvml) -> tuple[NvmlGpu, dict[str, float]]:
    """Two readings a second apart: rates need one before."""
    gpu = NvmlGpu(nvml, 0)
    first = list(gpu.read(1_000_000_000))
    nvml.kib += 500
    return gpu, dict(first) | dict(gpu.read(2_000_000_000))


def test_units() -> None:
    nvml = FakeNvml()
    gpu, found = second_reading(nvml)
    assert found == WHOLE | {"nvlink_sent": 500 * 1024.0, "nvlink_received": 2 * 500 * 1024.0}
    assert dict(gpu.read_slowly()) == {
        "power_limit": 700.0,
        "pcie_generation": 5,
        "pcie_width": 16,
        "remapped_rows": 4, "retired_pages": 3, "pcie_sent": 10 * 1024.0, "pcie_received": 20 * 1024.0,
    }  # fmt: skip
    assert not gpu.refused and not gpu.missed and gpu.uuid == "GPU-0"


def test_time_that_clocks_were_held() -> None:
    nvml = FakeNvml()
    nvml.held = {74: 5_000_000_000, 270: 7}
    gpu = NvmlGpu(nvml, 0)
    assert not {"power_cap_time", "hardware_thermal_time"} & set(dict(gpu.read(1_000_000_000)))
    nvml.held = {74: 5_250_000_000, 270: 7, 271: 9}  # 271 was not supported, and is not asked for again
    found = dict(gpu.read(2_000_000_000))
    assert (found["power_cap_time"], found["hardware_thermal_time"]) == (25.0, 0.0) and "power_brake_time" not in found
    nvml.held = {74: 5_000_000_000, 270: 2**64 - 1}  # the driver began anew; not available
    assert not {"power_cap_time", "hardware_thermal_time"} & set(dict(gpu.read(3_000_000_000)))
    nvml.link_error = UNKNOWN
    assert "power_cap_time" not in dict(gpu.read(4_000_000_000))


def test_every_event_is_told_once() -> None:
    nvml = FakeNvml()
    gpus = nvml_gpus(nvml)
    events = NvmlEvents(nvml, gpus)
    assert events.are_there and nvml.registered == [0, 1]
    assert [events.wait(50) for _ in range(3)] == [(1, 79), (1, 48), None]
    nvml.errors["nvmlEventSetWait_v2"] = UNKNOWN
    with pytest.raises(FakeError):
        events.wait(50)
    events.close()
    events.close()
    assert nvml.freed == 1 and not events.are_there


@pytest.mark.parametrize("code", [NOT_SUPPORTED, NO_PERMISSION, UNKNOWN])
def test_a_gpu_without_events_leaves_those_of_the_others(code: int) -> None:
    nvml = FakeNvml()
    nvml.silent = {0: code}
    gpus = nvml_gpus(nvml)
    events = NvmlEvents(nvml, gpus)
    assert events.are_there and nvml.freed == 1 and nvml.registered == [1]
    assert [gpu.refused for gpu in gpus] == [{"xid": f"nvml {code}"}, {}]
    nvml.errors = {"nvmlEventSetCreate": code}
    assert not NvmlEvents(nvml, gpus).are_there and gpus[1].refused == {"xid": f"nvml {code}"}


@pytest.mark.parametrize("none", [0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF])
def test_what_nvml_does_not_know_is_no_reading(none: int, monkeypatch: pytest.MonkeyPatch) -> None:
    slow = ("EnforcedPowerLimit", "CurrPcieLinkGeneration", "CurrPcieLinkWidth", "PcieThroughput")
    for name in (*LEFT_OUT, *(f"nvmlDeviceGet{what}" for what in slow)):
        if name not in ("nvmlDeviceGetFieldValues", "nvmlDeviceGetUUID"):
            monkeypatch.setitem(ANSWERS, name, lambda *of: none)
    monkeypatch.setitem(ANSWERS, "nvmlDeviceGetMemoryInfo", lambda *of: SimpleNamespace(used=none))
    monkeypatch.setitem(ANSWERS, "nvmlDeviceGetUtilizationRates", lambda *of: SimpleNamespace(gpu=none, memory=none))
    gpu = NvmlGpu(FakeNvml(), 0)
    assert list(gpu.read(1)) == [] or dict(gpu.read(1)).keys() <= {"nvlink_sent", "nvlink_received"}
    assert set(dict(gpu.read_slowly())) == {"remapped_rows", "retired_pages"} and gpu.missed and not gpu.refused
    monkeypatch.setitem(ANSWERS, "nvmlDeviceGetPerformanceState", lambda *of: 32)
    assert "performance_state" not in dict(gpu.read(2))


@pytest.mark.parametrize("function", LEFT_OUT)
@pytest.mark.parametrize("code", [NOT_SUPPORTED, NO_PERMISSION, NOT_FOUND])
def test_what_is_refused_is_asked_once(function: str, code: int) -> None:
    nvml = FakeNvml()
    nvml.errors[function] = code
    gpu, found = second_reading(nvml)
    whole = {*WHOLE, "nvlink_sent", "nvlink_received"}
    assert set(found) == whole - LEFT_OUT[function]
    assert gpu.refused and set(gpu.refused.values()) == {f"nvml {code}"} and not gpu.missed


@pytest.mark.parametrize("function", set(LEFT_OUT) - {"nvmlDeviceGetUUID"})
@pytest.mark.parametrize("error", [FakeError(UNKNOWN), OSError("ctypes"), ValueError("of a broken binding")])
def test_what_fails_is_counted_and_tried_again(function: str, error: Exception) -> None:
    nvml = FakeNvml()
    gpu = NvmlGpu(nvml, 0)
    nvml.raises[function] = error
    assert not set(dict(gpu.read(1))) & LEFT_OUT[function]
    assert gpu.missed >= 1 and not gpu.refused
    del nvml.raises[function]
    gpu.read(2)
    assert LEFT_OUT[function] <= {name for _ in range(2) for name, _ in gpu.read(3 + _ * 10**9)} | {
        "nvlink_sent",
        "nvlink_received",
    }


@pytest.mark.parametrize("function", [*LEFT_OUT])
def test_a_lost_gpu_is_left_alone(function: str) -> None:
    nvml = FakeNvml()
    nvml.errors[function] = LOST
    gpu = NvmlGpu(nvml, 0)
    list(gpu.read(1))
    assert gpu.is_lost and gpu.refused == {"everything": "nvml 15"}
    nvml.errors.clear()
    assert list(gpu.read(2)) == list(gpu.read_slowly()) == []


def test_a_binding_that_is_older() -> None:
    nvml = FakeNvml()
    nvml.old = {"nvmlDeviceGetFieldValues", "nvmlDeviceGetPerformanceState"}
    gpu, found = second_reading(nvml)
    assert set(found) == {*WHOLE} - {"performance_state"}
    assert set(gpu.refused) == {"nvlink", "held", "performance_state"}


def test_links_that_are_not_there() -> None:
    nvml = FakeNvml()
    nvml.link_error = NOT_SUPPORTED
    gpu, found = second_reading(nvml)
    assert "nvlink_sent" not in found and gpu.refused == {"nvlink": "nvml 3"}


def test_which_gpus() -> None:
    nvml = FakeNvml()
    assert [gpu.uuid for gpu in nvml_gpus(nvml)] == ["GPU-0", "GPU-1"]
    nvml.errors["nvmlDeviceGetHandleByIndex"] = NO_PERMISSION
    assert nvml_gpus(nvml) == []
    nvml.errors["nvmlDeviceGetCount"] = UNKNOWN
    assert nvml_gpus(nvml) == []
