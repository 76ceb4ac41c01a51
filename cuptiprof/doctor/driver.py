"""The NVIDIA driver through ctypes: is it there, which GPUs, and a little work for them to do. Runs in the child."""

from __future__ import annotations

import ctypes
from typing import Any

# CUresult -> (what happened, what to do), for the codes that users meet in cuInit and context creation.
ERRORS = {
    2: ("out of memory", "another process uses up the GPU's memory"),
    3: ("not initialised", "check the driver with `nvidia-smi`"),
    34: (
        "this libcuda.so.1 is the toolkit's link stub",
        "remove the stubs folder of the CUDA toolkit from LD_LIBRARY_PATH",
    ),
    46: ("the GPU is busy or in exclusive mode", "stop the other process, or `nvidia-smi -c DEFAULT`"),
    100: (
        "no GPU is visible",
        "check CUDA_VISIBLE_DEVICES and `nvidia-smi`; start a container with --gpus all",
    ),
    101: ("a device that does not exist", "check CUDA_VISIBLE_DEVICES"),
    802: ("the GPUs are not ready", "on NVSwitch machines start nvidia-fabricmanager"),
    803: (
        "libcuda and the kernel module are of different versions",
        "reboot, or reload the nvidia kernel module; in a container use the host's libcuda",
    ),
    804: (
        "forward compatibility is not supported by this GPU",
        "remove the cuda-compat package, or update the driver",
    ),
    999: ("unknown error", "look at `dmesg | grep -i nvrm`; a reboot may be needed"),
}
_COMPUTE_MODES = {0: "default", 2: "prohibited", 3: "exclusive process"}
_CAPABILITY_MAJOR, _CAPABILITY_MINOR, _MULTIPROCESSORS, _COMPUTE_MODE = 75, 76, 16, 20

# An empty kernel; the driver compiles it for the GPU at hand.
PTX = b"""
.version 6.0
.target sm_52
.address_size 64
.visible .entry cuptiprof_doctor() { ret; }
"""


class DriverError(Exception):
    """A driver call failed."""

    def __init__(self, call: str, code: int) -> None:
        what, self.hint = ERRORS.get(code, ("", "check the driver with `nvidia-smi`"))
        super().__init__(f"{call} returned {code}" + (f" ({what})" if what else ""))
        self.code = code


class Driver:
    """libcuda.so.1. Raises OSError when there is none."""

    def __init__(self) -> None:
        self._lib = ctypes.CDLL("libcuda.so.1", mode=ctypes.RTLD_GLOBAL)

    def call(self, name: str, *arguments: Any) -> None:
        """Call a function that returns a CUresult."""
        function = getattr(self._lib, name, None)
        if function is None:
            raise DriverError(name, 500)
        code = int(function(*arguments))
        if code != 0:
            raise DriverError(name, code)

    def version(self) -> int:
        """cuDriverGetVersion()."""
        value = ctypes.c_int()
        self.call("cuDriverGetVersion", ctypes.byref(value))
        return value.value

    def gpus(self) -> list[dict[str, Any]]:
        """What the driver says of each GPU; after cuInit."""
        count = ctypes.c_int()
        self.call("cuDeviceGetCount", ctypes.byref(count))
        return [self._gpu(i) for i in range(count.value)]

    def _gpu(self, ordinal: int) -> dict[str, Any]:
        device = ctypes.c_int()
        self.call("cuDeviceGet", ctypes.byref(device), ordinal)
        name = ctypes.create_string_buffer(256)
        self.call("cuDeviceGetName", name, 256, device)
        memory = ctypes.c_size_t()
        uuid = ctypes.create_string_buffer(16)
        gpu: dict[str, Any] = {"ordinal": ordinal, "name": name.value.decode("utf-8", "replace")}
        try:
            self.call("cuDeviceTotalMem_v2", ctypes.byref(memory), device)
            gpu["memory_bytes"] = memory.value
            major, minor = (
                self._attribute(device, _CAPABILITY_MAJOR),
                self._attribute(device, _CAPABILITY_MINOR),
            )
            gpu["compute_capability"] = f"{major}.{minor}"
            gpu["multiprocessors"] = self._attribute(device, _MULTIPROCESSORS)
            gpu["compute_mode"] = _COMPUTE_MODES.get(self._attribute(device, _COMPUTE_MODE), "unknown")
            self.call("cuDeviceGetUuid_v2", uuid, device)
            gpu["uuid"] = uuid.raw.hex()
        except DriverError as e:
            gpu["error"] = str(e)
        return gpu

    def _attribute(self, device: ctypes.c_int, attribute: int) -> int:
        value = ctypes.c_int()
        self.call("cuDeviceGetAttribute", ctypes.byref(value), attribute, device)
        return value.value


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
