"""CUPTI's counter functions without cuptiprof in between, on the GPU or on the stand-in.

Structs and objects are those of the stand-in's tests, so that what is asked of hardware is what they claim of it.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cuptiprof import _core
from cuptiprof.device.driver import Driver
from cuptiprof.device.locate import find_cupti
from cuptiprof.sim.sim_device import SimDevice, library_path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "sim"))
from counter_abi import CounterApi, CuptiFailed, text_array
from counter_objects import AUTO, KERNEL_REPLAY, SAMPLING, USER, USER_REPLAY, Host, Sampler
from counter_objects import Ranges as _Ranges

__all__ = ["AUTO", "KERNEL_REPLAY", "SAMPLING", "USER", "USER_REPLAY", "CuptiFailed", "Host", "LaunchHook", "Ranges", "RawApi", "Sampler", "text_array"]  # fmt: skip

INST = "sm__inst_executed.sum"
ONE_PASS = [INST, "sm__cycles_active.avg", "dram__bytes_read.sum"]
TWO_PASSES = [*ONE_PASS, "lts__t_sector_hit_rate.pct"]
LAUNCH_CBIDS = (307, 652)  # cuLaunchKernel, cuLaunchKernelEx (cupti_driver_cbid.h)
DRIVER_DOMAIN, ENTER = 1, 0


class RawApi(CounterApi):
    """``call`` of the tests' CounterApi on either library; ``chip`` is the device's name."""

    def __init__(self, device: str) -> None:
        self.version = 0
        if device == "cuda":
            found = find_cupti()
            library = _core.load_cupti(found.path, found.how)
            _core.preload_nvperf(library)
            self.lib = ctypes.CDLL(found.path)
            self._driver = Driver()
            self.version = library.version
        else:
            SimDevice().launch("the first launch makes the context")
            self.lib = ctypes.CDLL(str(library_path()))
            self._driver = Driver(self.lib)
        self.call("cuptiProfilerInitialize")
        self.chip = self.call("cuptiDeviceGetChipName", device=0).chip.decode()

    def context(self) -> int:
        handle = self._driver.current_context()
        if not handle:
            raise RuntimeError("no CUDA context is current on this thread")
        return handle

    def timestamp(self) -> int:
        """CUPTI's clock, ns."""
        now = ctypes.c_uint64()
        self.lib.cuptiGetTimestamp(ctypes.byref(now))
        return now.value


class _CallbackData(ctypes.Structure):
    _fields_ = [("site", ctypes.c_int), ("function", ctypes.c_char_p)]  # the head of CUpti_CallbackData


_Callback = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, ctypes.c_uint32, ctypes.POINTER(_CallbackData))


class LaunchHook:
    """Calls ``before`` and ``after`` inside the driver's launch callback, as the profiler does; errors are kept in ``error``."""

    def __init__(self, api: RawApi, before: Callable[[], object], after: Callable[[], object]) -> None:
        self.api, self.before, self.after = api, before, after
        self.calls, self.error = 0, ""
        self._callback = _Callback(self._called)
        self._subscriber = ctypes.c_void_p()

    def _called(self, user: Any, domain: int, cbid: int, data: Any) -> None:
        if self.error:
            return
        try:
            if data.contents.site == ENTER:
                self.calls += 1
                self.before()
            else:
                self.after()
        except Exception as e:  # nothing may leave a C callback
            self.error = f"launch {self.calls}: {e}"

    def __enter__(self) -> LaunchHook:
        rc = self.api.lib.cuptiSubscribe(ctypes.byref(self._subscriber), self._callback, None)
        if rc != 0:
            raise RuntimeError(f"cuptiSubscribe returned {rc}")
        for cbid in LAUNCH_CBIDS:
            self.api.lib.cuptiEnableCallback(1, self._subscriber, DRIVER_DOMAIN, cbid)
        return self

    def __exit__(self, *error: object) -> None:
        self.api.lib.cuptiUnsubscribe(self._subscriber)


class Ranges(_Ranges):
    """The tests' range profiler, configured to the last field as the session does it."""

    def set_config(self, **changes: Any) -> None:
        super().set_config(**{"pass_index": 0, "target_level": 1, **changes})

    def initialize(self) -> None:
        """No ranges in the image any more."""
        self.do("CounterDataImageInitialize", size=len(self.data), image=self.data)
