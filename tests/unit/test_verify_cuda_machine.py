"""``CudaMachine`` over a driver that only takes notes: what each probe would give to a GPU."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from cuptiprof import _core
from cuptiprof.cli import main
from cuptiprof.device import devices
from cuptiprof.device.driver import DeviceAttribute, FunctionAttribute
from cuptiprof.errors import DeviceError
from cuptiprof.verify import Counted, CudaMachine, KernelLaunch, Measured, Traced, all_probes, open_machine

SOURCES = Path(__file__).resolve().parents[2] / "csrc/probes"
ATTRIBUTES = {
    DeviceAttribute.MULTIPROCESSOR_COUNT: 132,
    DeviceAttribute.L2_CACHE_SIZE: 50 << 20,
    DeviceAttribute.COMPUTE_CAPABILITY_MAJOR: 9,
    DeviceAttribute.COMPUTE_CAPABILITY_MINOR: 0,
}


def parameters() -> dict[str, list[str]]:
    """Kernel -> the types of its parameters, from the sources."""
    out = {}
    for path in SOURCES.glob("*.cu"):
        text = path.read_text()
        for name, inside in re.findall(r"\b(probe_\w+)\(([^()]*)\)\s*\{", text):
            out[name] = [p.strip() for p in inside.split(",")]
        for name in re.findall(r"^CHAIN_(?:WORD|LONG)\((\w+),", text, re.M):
            out[f"probe_{name}"] = ["Word* out", "u64 iterations", "u64 operand"]
    return out


class NotingDevice:
    """Stands for ``_core.ProbeDevice``: hands out numbers and notes every call."""

    made: list[NotingDevice]

    def __init__(self, library: Any, device: int, *, with_probes: bool) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self.memory: dict[int, int] = {}
        self.host: set[int] = set()
        self.capturing = False
        self.next = 0
        type(self).made.append(self)

    @staticmethod
    def count(library: Any) -> int:
        return 2

    def attribute(self, id: int) -> int:
        return ATTRIBUTES[DeviceAttribute(id)]

    def kernel_attribute(self, kernel: str, id: int) -> int:
        return 0 if id == FunctionAttribute.SHARED_SIZE_BYTES else 128 if "registers" in kernel else 32

    def memory_info(self) -> list[int]:
        return [60 << 30, 80 << 30]

    def _number(self) -> int:
        self.next += 1 << 40
        return self.next

    def allocate(self, size: int, zeroed: bool = True) -> int:
        assert size > 0 and not self.capturing
        at = self._number()
        self.memory[at] = size
        return at

    def allocate_host(self, size: int) -> int:
        at = self.allocate(size)
        self.host.add(at)
        return at

    def free(self, address: int) -> None:
        del self.memory[address]

    def read_word(self, address: int) -> int:
        assert address in self.memory
        return 7

    def launch(self, kernel: str, grid: Any, block: Any, shared: int, stream: int, arguments: list[int]) -> None:
        self.calls.append(("launch", kernel, grid, block, shared, arguments))

    def copy(self, kind: int, destination: int, source: int, size: int, stream: int) -> None:
        assert self.memory[destination] >= size <= self.memory[source]
        assert (destination in self.host, source in self.host) == {1: (False, True), 2: (True, False), 8: (False,) * 2}[
            kind
        ]
        self.calls.append(("copy", kind, size))

    def copy_peer(self, destination: int, other: NotingDevice, source: int, size: int, stream: int) -> None:
        assert self.memory[destination] >= size == other.memory[source] and other is not self
        self.calls.append(("peer", size))

    def set(self, destination: int, value: int, width: int, count: int, stream: int) -> None:
        assert self.memory[destination] >= width * count
        self.calls.append(("set", value, width, count))

    def make_stream(self) -> int:
        return self._number()

    def order(self, first: int, then: int) -> None:
        assert first != then

    def begin_capture(self, stream: int) -> None:
        self.capturing = True

    def end_capture(self, stream: int) -> int:
        self.capturing = False
        return self._number()

    def launch_graph(self, graph: int, stream: int) -> None:
        self.calls.append(("graph", graph))

    def synchronize(self) -> None:
        assert not self.capturing


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> CudaMachine:
    NotingDevice.made = []
    opened = devices.open_device("sim")
    monkeypatch.setattr(devices, "open_device", lambda spec: SimpleNamespace(library=opened.library, simulated=False))
    monkeypatch.setattr(_core, "ProbeDevice", NotingDevice)
    monkeypatch.setattr(_core, "probe_images", lambda: {"all": b"x"})
    made = open_machine("cuda")
    assert isinstance(made, CudaMachine)
    return made


def test_facts_come_from_the_device(machine: CudaMachine) -> None:
    facts = machine.facts
    assert (facts.sms, facts.l2_bytes, facts.compute, facts.devices) == (132, 50 << 20, (9, 0), 2)
    assert facts.chip == "GH100" and not facts.simulated and facts.limits is not None


@pytest.mark.parametrize("name", list(all_probes()))
def test_what_a_probe_gives_to_the_driver(machine: CudaMachine, name: str) -> None:
    (gpu,) = NotingDevice.made
    kernels = parameters()
    plan = all_probes()[name].plan(machine)
    if isinstance(plan, Traced):
        plan.work(machine)
    elif isinstance(plan, Measured):
        machine.device = devices.SimulatedDevice()  # for its sessions
        assert not any("record" in way for way in plan.measure(machine)[0])
    else:
        for launch in plan.launches:
            machine.prepare(launch)
        for launch in plan.launches:
            machine.launch(launch)
        assert all(machine.word(b) == 7.0 for b in plan.words.values())
    assert gpu.calls
    for call in gpu.calls:
        if call[0] != "launch":
            continue
        _, kernel, grid, block, shared, arguments = call
        types = kernels[kernel]
        assert len(arguments) == len(types), kernel
        for argument, text in zip(arguments, types, strict=True):
            assert ("*" in text) == (argument in gpu.memory and argument > 0), (kernel, text)
        assert 1 <= block[0] <= 1024 and 1 <= grid[0] < 2**31 and 0 <= shared <= 227 << 10
    machine.release()
    assert gpu.memory == {}


def reach(launch: KernelLaunch) -> dict[int, int]:
    """Argument -> bytes from its start that the kernel touches, from what the sources say."""
    args, threads = launch.args, launch.threads
    number = [a if isinstance(a, int) else 0 for a in args]
    shape = _core.PROBE_SHAPE
    return {
        "probe_read": lambda: {0: number[2] * 16},
        "probe_write": lambda: {0: number[1] * 16},
        "probe_copy": lambda: {0: number[2] * 16, 1: number[2] * 16},
        "probe_read_l1": lambda: {0: threads * 4},
        "probe_load_strided": lambda: {0: ((threads - 1) * number[2] + number[3] + 1) * 4},
        "probe_store_strided": lambda: {0: ((threads - 1) * number[1] + number[2] + 1) * 4},
        "probe_branch": lambda: {0: threads * 4},
        "probe_reduction": lambda: {0: threads * 4},
        "probe_atomic": lambda: {0: threads * 4},
        "probe_shared_load": lambda: {0: threads * 4},
        "probe_shared_store": lambda: {0: threads * 4},
        "probe_straight_short": lambda: {0: threads * shape["chains"] * 4},
        "probe_straight_long": lambda: {0: threads * shape["chains"] * 4},
        "probe_mma_f16": lambda: {0: threads * shape["chains"] * 16},
        "probe_spin": dict,
        "probe_spin_shared": dict,
        "probe_spin_registers": lambda: {0: (shape["live_registers"] * 256) * 4},
        **{
            f"probe_{o}_f{b}": (lambda b=b: {0: threads * shape["chains"] * (8 if b == 64 else 4)})
            for o in ("fma", "add", "mul")
            for b in (16, 32, 64)
        },
    }[launch.kernel]()


def test_no_kernel_reaches_beyond_its_buffers(machine: CudaMachine) -> None:
    seen: Counter[str] = Counter()
    for probe in all_probes().values():
        plan = probe.plan(machine)
        if not isinstance(plan, Counted):
            continue
        for launch in plan.launches:
            for index, size in reach(launch).items():
                buffer = launch.args[index]
                assert not isinstance(buffer, int) and size <= buffer.bytes, launch.kernel
                seen[launch.kernel] += 1
    assert len(seen) > 15


def test_streams_are_whole_turns_of_the_grid(machine: CudaMachine) -> None:
    for name in ("stream-read", "stream-write", "stream-copy", "l2-resident"):
        plan = all_probes()[name].plan(machine)
        assert isinstance(plan, Counted)
        (launch,) = plan.launches
        buffer = launch.args[0]
        assert not isinstance(buffer, int) and buffer.bytes % (launch.threads * 16) == 0
        assert (buffer.bytes > 8 * machine.facts.l2_bytes) == (name != "l2-resident")


def test_a_build_without_probes_says_what_to_do(
    machine: CudaMachine, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(_core, "probe_images", dict)
    assert main(["verify"]) == 2
    assert "nvcc" in capsys.readouterr().err


def test_without_a_driver_it_cannot_run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def refuse(spec: str) -> Any:
        raise DeviceError("no NVIDIA driver here", hint="--device sim")

    monkeypatch.setattr(devices, "open_device", refuse)
    assert main(["verify", "--device", "cuda"]) == 2
    assert "--device sim" in capsys.readouterr().err
