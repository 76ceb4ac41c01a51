"""The simulated device as a machine for probes: each launch becomes a simulated one that causes the launch's counts.

It proves the way of a number through the profiler, not the number: whoever reads the table sees that it is simulated.
"""

from __future__ import annotations

from collections.abc import Mapping

from cuptiprof import _core
from cuptiprof.device.devices import Device, SimulatedDevice, open_device
from cuptiprof.device.sim_gpu import SimGpu
from cuptiprof.errors import DeviceError
from cuptiprof.sim.sim_device import Op
from cuptiprof.verify.kernel_launch import Buffer, KernelLaunch
from cuptiprof.verify.machine import facts_of

_REGISTERS = {"probe_spin_registers": _core.PROBE_SHAPE["live_registers"] + 32}  # what a compiler would about need
_USUAL_REGISTERS = 32
_USUAL_NS = 20_000
_ENDLESS_MEMORY = 1 << 40  # it has none to run out of


class SimMachine:
    """The stand-in.

    Args:
        device: "sim" or "sim:CHIP", or such a device.
        distort: raw counter -> factor; what the device counts of it is that much off. For tests of ``verify`` itself.

    Raises:
        DeviceError: no such chip.
    """

    def __init__(self, device: str | SimulatedDevice = "sim", *, distort: Mapping[str, float] | None = None) -> None:
        opened = open_device(device)
        if not isinstance(opened, SimulatedDevice):
            raise DeviceError(f"{opened.spec!r} is not the simulated device")
        self.device: Device = opened
        self.gpu = SimGpu(opened)
        self._distort = dict(distort or {})
        self.facts = facts_of(self.gpu, opened.library, "simulated {chip}", _ENDLESS_MEMORY)

    def registers(self, kernel: str) -> tuple[int, int]:
        return _REGISTERS.get(kernel, _USUAL_REGISTERS), 0

    def launch(self, launch: KernelLaunch, stream: int = 0) -> None:
        sim = self.gpu.sim
        op = sim.ops(
            1,
            Op.KERNEL,
            name=launch.kernel,
            grid=(launch.grid, 1, 1),
            block=(launch.block, 1, 1),
            dynamic_shared_memory=launch.shared,
            registers_per_thread=self.registers(launch.kernel)[0],
            duration_ns=launch.lasts or _USUAL_NS,
            stream=stream,
        )
        counts = dict(launch.counts)
        if launch.active:
            counts["sm__cycles_active"] = launch.active * float(sim.true_metric("sm__cycles_elapsed.sum", op)[0])
            if launch.resident:
                counts["sm__warps_active"] = launch.resident * counts["sm__cycles_active"]
        for counter, total in counts.items():
            sim.set_counter(counter, total * self._distort.get(counter, 1.0), launch.kernel)
        sim.run(op)

    def word(self, buffer: Buffer) -> float | None:
        return None

    def prepare(self, launch: KernelLaunch) -> None:
        pass

    def release(self) -> None:
        self.gpu.sim.clear_counters()
