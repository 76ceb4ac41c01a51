"""The simulated device as a machine for probes: each launch becomes a simulated one that causes the launch's counts.

It proves the way of a number through the profiler, not the number: whoever reads the table sees that it is simulated.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from cuptiprof import _core
from cuptiprof.data.occupancy import chip_limits
from cuptiprof.device.devices import Device, SimulatedDevice, open_device
from cuptiprof.device.driver import DeviceAttribute, Driver
from cuptiprof.sim.sim_device import Flag, Op, SimDevice
from cuptiprof.verify.kernel_launch import Buffer, Facts, KernelLaunch

_REGISTERS = {"probe_spin_registers": _core.PROBE_SHAPE["live_registers"] + 32}  # what a compiler would about need
_USUAL_REGISTERS = 32
_USUAL_NS = 20_000


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
        self.device: str | Device = device
        self.library = opened.library
        self._sim = SimDevice()
        self._distort = dict(distort or {})
        self._next = 16  # IDs of streams, events and graphs
        attribute = Driver(self._sim.library).attribute
        major, minor = (
            attribute(DeviceAttribute.COMPUTE_CAPABILITY_MAJOR),
            attribute(DeviceAttribute.COMPUTE_CAPABILITY_MINOR),
        )
        chip = _core.chip_name(self.library, 0)
        self.facts = Facts(
            chip=chip,
            name=f"simulated {chip}",
            compute=(major, minor),
            sms=attribute(DeviceAttribute.MULTIPROCESSOR_COUNT),
            l2_bytes=attribute(DeviceAttribute.L2_CACHE_SIZE),
            memory_bytes=1 << 40,  # it has none to run out of
            limits=chip_limits(major, minor),
            simulated=True,
        )

    def _new_id(self) -> int:
        self._next += 1
        return self._next

    def registers(self, kernel: str) -> tuple[int, int]:
        return _REGISTERS.get(kernel, _USUAL_REGISTERS), 0

    def _op(self, launch: KernelLaunch, stream: int) -> Any:
        return self._sim.ops(
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

    def launch(self, launch: KernelLaunch, stream: int = 0) -> None:
        op = self._op(launch, stream)
        counts = dict(launch.counts)
        if launch.active:
            counts["sm__cycles_active"] = launch.active * float(self._sim.true_metric("sm__cycles_elapsed.sum", op)[0])
            if launch.resident:
                counts["sm__warps_active"] = launch.resident * counts["sm__cycles_active"]
        for counter, total in counts.items():
            self._sim.set_counter(counter, total * self._distort.get(counter, 1.0), launch.kernel)
        self._sim.run(op)

    def copy(self, kind: int, size: int, stream: int = 0) -> None:
        self._sim.call(Op.MEMCPY, bytes=size, copy_kind=kind, stream=stream, flags=Flag.ASYNC)

    def copy_peer(self, size: int) -> None:
        raise AssertionError("one simulated GPU")

    def set(self, value: int, width: int, count: int, stream: int = 0) -> None:
        self._sim.call(Op.MEMSET, bytes=width * count, value=value, stream=stream, flags=Flag.ASYNC)

    def stream(self) -> int:
        stream = self._new_id()
        self._sim.call(Op.STREAM_CREATE, stream=stream)
        return stream

    def order(self, first: int, then: int) -> None:
        event = self._new_id()
        self._sim.call(Op.EVENT_RECORD, event=event, stream=first)
        self._sim.call(Op.STREAM_WAIT_EVENT, event=event, stream=then)

    def graph(self, body: Callable[[int], None]) -> int:
        graph = self._new_id()
        self._sim.call(Op.GRAPH_BEGIN_CAPTURE, graph_id=graph)
        body(0)
        self._sim.call(Op.GRAPH_END_CAPTURE, graph_id=graph)
        return graph

    def run_graph(self, graph: int) -> None:
        self._sim.call(Op.GRAPH_LAUNCH, graph_id=graph)

    def synchronize(self) -> None:
        self._sim.synchronize()

    def word(self, buffer: Buffer) -> float | None:
        return None

    def prepare(self, launch: KernelLaunch) -> None:
        pass

    def release(self) -> None:
        self._sim.clear_counters()
