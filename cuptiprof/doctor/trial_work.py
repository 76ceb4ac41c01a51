"""A little work for the trial session of the doctor, through the driver alone. Runs in the child."""

from __future__ import annotations

import ctypes

from cuptiprof.device.driver import Driver

# An empty kernel; the driver compiles it for the GPU at hand.
PTX = b"""
.version 6.0
.target sm_52
.address_size 64
.visible .entry cuptiprof_doctor() { ret; }
"""


class TrialWork:
    """A context on GPU 0 with one copy, one set and one kernel to run in it."""

    BYTES = 1 << 16

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._device, self._context = ctypes.c_int(), ctypes.c_void_p()
        self._memory = ctypes.c_uint64()
        self._kernel = ctypes.c_void_p()
        driver.call("cuDeviceGet", ctypes.byref(self._device), 0)
        driver.call("cuDevicePrimaryCtxRetain", ctypes.byref(self._context), self._device)
        driver.call("cuCtxSetCurrent", self._context)
        driver.call("cuMemAlloc_v2", ctypes.byref(self._memory), ctypes.c_size_t(self.BYTES))
        module = ctypes.c_void_p()
        driver.call("cuModuleLoadData", ctypes.byref(module), ctypes.c_char_p(PTX))
        driver.call("cuModuleGetFunction", ctypes.byref(self._kernel), module, b"cuptiprof_doctor")

    def run(self) -> None:
        """Copy, set, launch, and wait."""
        host = ctypes.create_string_buffer(self.BYTES)
        size = ctypes.c_size_t(self.BYTES)
        self._driver.call("cuMemcpyHtoD_v2", self._memory, host, size)
        self._driver.call("cuMemsetD8_v2", self._memory, ctypes.c_ubyte(0), size)
        one, none = ctypes.c_uint(1), ctypes.c_uint(0)
        null = ctypes.c_void_p()
        self._driver.call("cuLaunchKernel", self._kernel, one, one, one, one, one, one, none, null, null, null)
        self._driver.call("cuCtxSynchronize")
