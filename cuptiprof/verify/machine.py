"""The machine that probes run on: a GPU, and what a probe must know of it.

More than the GPU's face: a probe's launch names its memory, and on the simulated device it says what it causes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from cuptiprof import _core
from cuptiprof.data.occupancy import chip_limits
from cuptiprof.device.driver import DeviceAttribute, FunctionAttribute
from cuptiprof.device.driver_gpu import DriverGpu
from cuptiprof.device.gpu import Gpu
from cuptiprof.errors import DeviceError
from cuptiprof.verify.kernel_launch import Buffer, Facts, KernelLaunch

if TYPE_CHECKING:
    from cuptiprof.device.devices import Device


class Machine(Protocol):
    """Where probes run. Copies, streams, graphs and waiting are the GPU's own."""

    device: Device
    facts: Facts

    @property
    def gpu(self) -> Gpu: ...

    def registers(self, kernel: str) -> tuple[int, int]:
        """(registers a thread, static shared memory in bytes) of a kernel."""

    def launch(self, launch: KernelLaunch, stream: int = 0) -> None: ...

    def word(self, buffer: Buffer) -> float | None:
        """First 32-bit word of a buffer that a launch used; None: this machine has no memory."""

    def prepare(self, launch: KernelLaunch) -> None:
        """Allocate what a launch uses, before anything is traced or captured."""

    def release(self) -> None:
        """Give back what the probe used."""


def facts_of(gpu: Gpu, library: _core.CuptiLibrary, name: str, memory_bytes: int, devices: int = 1) -> Facts:
    """What the driver says of a GPU. `name`: for people, with the chip's name for ``{chip}``."""
    assert gpu.device is not None
    compute = (
        gpu.attribute(DeviceAttribute.COMPUTE_CAPABILITY_MAJOR),
        gpu.attribute(DeviceAttribute.COMPUTE_CAPABILITY_MINOR),
    )
    chip = _core.chip_name(library, gpu.ordinal)
    return Facts(
        chip=chip,
        name=name.format(chip=chip, compute=f"{compute[0]}.{compute[1]}"),
        compute=compute,
        sms=gpu.attribute(DeviceAttribute.MULTIPROCESSOR_COUNT),
        l2_bytes=gpu.attribute(DeviceAttribute.L2_CACHE_SIZE),
        memory_bytes=memory_bytes,
        limits=chip_limits(*compute),
        devices=devices,
        simulated=gpu.device.simulated,
    )


class CudaMachine:
    """The first GPU of this process.

    Raises:
        DeviceError: no driver, no GPU, or this build has no probes.
        CuptiError: a CUDA call failed.
    """

    def __init__(self) -> None:
        from cuptiprof.device.devices import open_device

        self.device = open_device("cuda")
        if not _core.probe_images():
            raise DeviceError(
                "this build of cuptiprof has no probe kernels: nvcc was not found when it was built",
                hint="install the CUDA toolkit (or set CUDACXX to its nvcc) and reinstall cuptiprof",
            )
        self.gpu = DriverGpu(self.device, with_probes=True)
        self._buffers: dict[int, tuple[Buffer, int]] = {}
        library = self.device.library
        self.facts = facts_of(
            self.gpu,
            library,
            "GPU 0 ({chip}, compute capability {compute})",
            self.gpu.free_bytes(),
            _core.ProbeDevice.count(library),
        )

    def registers(self, kernel: str) -> tuple[int, int]:
        of = self.gpu.kernel_attribute
        return of(kernel, FunctionAttribute.NUM_REGS), of(kernel, FunctionAttribute.SHARED_SIZE_BYTES)

    def _address(self, buffer: Buffer) -> int:
        if id(buffer) not in self._buffers:
            self._buffers[id(buffer)] = buffer, self.gpu.allocate(buffer.bytes, cleared=True)
        return self._buffers[id(buffer)][1]

    def launch(self, launch: KernelLaunch, stream: int = 0) -> None:
        arguments = [self._address(a) if isinstance(a, Buffer) else a for a in launch.args]
        grid, block = (launch.grid, 1, 1), (launch.block, 1, 1)
        self.gpu.launch(launch.kernel, grid, block, shared=launch.shared, stream=stream, arguments=arguments)

    def word(self, buffer: Buffer) -> float | None:
        return float(self.gpu.read_word(self._address(buffer)))

    def prepare(self, launch: KernelLaunch) -> None:
        for argument in launch.args:
            if isinstance(argument, Buffer):
                self._address(argument)

    def release(self) -> None:
        self.gpu.release()
        for _, address in self._buffers.values():
            self.gpu.free(address)
        self._buffers.clear()
