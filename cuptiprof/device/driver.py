"""The NVIDIA driver by its own names, through ctypes: calls with their errors in words, attributes, what GPUs there are.

For what is looked at and for calls that nothing else has. Work goes to a GPU through :mod:`cuptiprof.device.gpu`.
"""

from __future__ import annotations

import contextlib
import ctypes
import enum
from collections.abc import Iterator
from typing import Any

LIBRARY = "libcuda.so.1"


class DeviceAttribute(enum.IntEnum):
    """CUdevice_attribute (cuda.h)."""

    CLOCK_RATE = 13  # kHz
    MULTIPROCESSOR_COUNT = 16
    COMPUTE_MODE = 20
    PCI_BUS_ID = 33
    PCI_DEVICE_ID = 34
    MEMORY_CLOCK_RATE = 36  # kHz
    GLOBAL_MEMORY_BUS_WIDTH = 37  # bits
    L2_CACHE_SIZE = 38  # bytes
    PCI_DOMAIN_ID = 50
    COMPUTE_CAPABILITY_MAJOR = 75
    COMPUTE_CAPABILITY_MINOR = 76


class FunctionAttribute(enum.IntEnum):
    """CUfunction_attribute (cuda.h)."""

    SHARED_SIZE_BYTES = 1  # static
    NUM_REGS = 4  # of a thread


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
_NOT_INITIALIZED = 3
_SYMBOL_NOT_FOUND = 500  # CUDA_ERROR_NOT_FOUND


class DriverError(Exception):
    """A driver call failed."""

    def __init__(self, call: str, code: int) -> None:
        what, self.hint = ERRORS.get(code, ("", "check the driver with `nvidia-smi`"))
        super().__init__(f"{call} returned {code}" + (f" ({what})" if what else ""))
        self.code = code


class Driver:
    """The functions of libcuda.so.1.

    Args:
        library: another library that has them; None: libcuda.so.1.

    Raises:
        OSError: there is no libcuda.so.1.
    """

    def __init__(self, library: ctypes.CDLL | None = None) -> None:
        self._lib = library or ctypes.CDLL(LIBRARY, mode=ctypes.RTLD_GLOBAL)

    def call(self, name: str, *arguments: Any) -> None:
        """Call a function that returns a CUresult.

        Raises:
            DriverError: it returned an error, or this driver has no such function.
        """
        function = getattr(self._lib, name, None)
        if function is None:
            raise DriverError(name, _SYMBOL_NOT_FOUND)
        code = int(function(*arguments))
        if code != 0:
            raise DriverError(name, code)

    def version(self) -> int:
        """cuDriverGetVersion(): 13000 for CUDA 13.0."""
        value = ctypes.c_int()
        self.call("cuDriverGetVersion", ctypes.byref(value))
        return value.value

    def attribute(self, which: DeviceAttribute, ordinal: int = 0) -> int:
        """Of a GPU; after cuInit."""
        device, value = ctypes.c_int(), ctypes.c_int()
        self.call("cuDeviceGet", ctypes.byref(device), ordinal)
        self.call("cuDeviceGetAttribute", ctypes.byref(value), int(which), device)
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
            major = self.attribute(DeviceAttribute.COMPUTE_CAPABILITY_MAJOR, ordinal)
            gpu["compute_capability"] = f"{major}.{self.attribute(DeviceAttribute.COMPUTE_CAPABILITY_MINOR, ordinal)}"
            gpu["multiprocessors"] = self.attribute(DeviceAttribute.MULTIPROCESSOR_COUNT, ordinal)
            gpu["compute_mode"] = _COMPUTE_MODES.get(self.attribute(DeviceAttribute.COMPUTE_MODE, ordinal), "unknown")
            self.call("cuDeviceGetUuid_v2", uuid, device)
            gpu["uuid"] = uuid.raw.hex()
        except DriverError as e:
            gpu["error"] = str(e)
        return gpu

    def current_context(self) -> int:
        """Handle of the calling thread's context; 0: it has none."""
        handle = ctypes.c_void_p()
        self.call("cuCtxGetCurrent", ctypes.byref(handle))
        return handle.value or 0

    def current_device(self) -> int:
        """Number of the GPU of the calling thread's context; 0: it has none."""
        try:
            if not self.current_context():
                return 0
        except DriverError as e:
            if e.code != _NOT_INITIALIZED:
                raise
            return 0  # the program has not used a GPU yet
        device = ctypes.c_int()
        self.call("cuCtxGetDevice", ctypes.byref(device))
        return device.value

    @contextlib.contextmanager
    def context(self, handle: int) -> Iterator[None]:
        """The context is the calling thread's inside."""
        self.call("cuCtxPushCurrent_v2", ctypes.c_void_p(handle))
        try:
            yield
        finally:
            self.call("cuCtxPopCurrent_v2", ctypes.byref(ctypes.c_void_p()))
