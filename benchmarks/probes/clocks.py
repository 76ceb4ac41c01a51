"""Clocks of the GPU before, while and after counters are armed, and what CUPTI says of them by itself."""

from __future__ import annotations

import ctypes
import time
from typing import Any

import cuptiprof
from benchmarks.gpu_work import Work
from benchmarks.probes.raw import ONE_PASS, USER, USER_REPLAY, Ranges, RawApi, Sampler
from cuptiprof.device.devices import open_device
from cuptiprof.device.nvml_counters import nvml_gpus
from cuptiprof.errors import DeviceError

SPIN_CYCLES = 20_000_000
NVML_CLOCK_SM = 1


class _Nvml:
    """SM clock of the first GPU by NVML, MHz; None where there is no NVML."""

    def __init__(self) -> None:
        self._lib: Any = None
        try:
            lib: Any = ctypes.CDLL("libnvidia-ml.so.1")
        except OSError:
            return
        self._device = ctypes.c_void_p()
        if lib.nvmlInit_v2() == 0 and lib.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(self._device)) == 0:
            self._lib = lib

    def sm_mhz(self) -> int | None:
        mhz = ctypes.c_uint()
        if self._lib is None or self._lib.nvmlDeviceGetClockInfo(self._device, NVML_CLOCK_SM, ctypes.byref(mhz)) != 0:
            return None
        return mhz.value


def _spin_mhz() -> float:
    """SM clock by a kernel that spins a known number of cycles."""
    import torch

    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begin.record()
    torch.cuda._sleep(SPIN_CYCLES)
    end.record()
    end.synchronize()
    return float(SPIN_CYCLES / begin.elapsed_time(end) / 1e3)


def locked_clocks(work: Work) -> dict[str, Any]:
    """SM clock by NVML and by a spinning kernel: before, with ranges enabled, started, stopped, disabled; with samples.

    Assumed: CUPTI may lock them; the result says so.
    """
    if work.device != "cuda":
        return {"not applicable": "the stand-in has no clocks to lock"}
    nvml = _Nvml()
    out: dict[str, Any] = {}

    def read(state: str) -> None:
        for _ in range(3):  # loaded, so that idle clocks are not what is read
            work.busy()
        work.synchronize()
        spun = sorted(_spin_mhz() for _ in range(3))
        out[state] = {"nvml_sm_mhz": nvml.sm_mhz(), "spin_mhz": [round(x, 1) for x in spun]}

    api = RawApi(work.device)
    read("before")
    ranges = Ranges(api, ONE_PASS, mode=USER, replay=USER_REPLAY, chip=api.chip)
    read("ranges configured")
    ranges.start()
    read("ranges started")
    ranges.push("r")
    read("in a range")
    ranges.pop()
    ranges.stop()
    read("ranges stopped")
    ranges.disable()
    time.sleep(0.2)
    read("ranges disabled")
    sampler = Sampler(api, ["sm__cycles_active.avg"], chip=api.chip)
    read("sampling configured")
    sampler.do("Start")
    read("sampling")
    sampler.do("Stop")
    sampler.do("Disable")
    time.sleep(0.2)
    read("sampling disabled")
    return out


def environment_records(work: Work) -> dict[str, Any]:
    """Does CUPTI write records of kind ENVIRONMENT, of which counters and how often, and what does NVML say of the same?

    Assumed: clocks, temperature, power and, where there is one, the fan, some times a second, as NVML has them.
    """
    if work.device != "cuda":
        return {"not applicable": "the stand-in has no readings of its own"}
    device = open_device(work.device)
    read = dict(nvml_gpus(device.nvml())[0].read(0))

    def no_nvml() -> Any:
        raise DeviceError("NVML is left out, so that CUPTI is asked")

    device.nvml = no_nvml
    seconds = 3.0
    with cuptiprof.profile(device=device, system=True) as prof:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            work.busy()
            work.synchronize()
    table = prof.result().system_samples
    of_gpu = table.where(table["device"] >= 0)
    means = {name: float(of_gpu["value"][of_gpu["counter"] == name].mean()) for name in set(of_gpu["counter"])}
    return {
        "a second": {name: int((of_gpu["counter"] == name).sum()) / seconds for name in sorted(means)},
        "means": means,
        "nvml before": {name: read[name] for name in sorted(means) if name in read},
    }


PROBES = [locked_clocks, environment_records]
