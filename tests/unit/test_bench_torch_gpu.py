"""PyTorch's way to the GPU, against a made-up torch whose calls are written down: what is called, in which order."""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
from collections.abc import Iterator
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

import cuptiprof.device.driver_gpu as driver_gpu
from cuptiprof.bench.sampling import Event, Graph, MeasuredCall
from cuptiprof.data.clock_state import NoClocks
from cuptiprof.device.driver import DeviceAttribute
from cuptiprof.device.gpu_clocks import NvmlClocks
from cuptiprof.device.torch_gpu import TorchGpu
from cuptiprof.errors import BenchError

ATTRIBUTES = {
    DeviceAttribute.MULTIPROCESSOR_COUNT: 132,
    DeviceAttribute.PCI_BUS_ID: 0x3B,
    DeviceAttribute.PCI_DEVICE_ID: 0,
    DeviceAttribute.L2_CACHE_SIZE: 50 << 20,
    DeviceAttribute.PCI_DOMAIN_ID: 0,
    DeviceAttribute.COMPUTE_CAPABILITY_MAJOR: 9,
    DeviceAttribute.COMPUTE_CAPABILITY_MINOR: 0,
}


class Stream(str):
    cuda_stream = 77


class FakeTorch(ModuleType):
    """Events are stamped with the time at which they are recorded; a call of the function takes 1 ms of it."""

    uint8 = "uint8"

    def __init__(self) -> None:
        super().__init__("torch")
        self.said: list[str] = []
        self.ms = 0.0
        self.pci: list[str] = []
        self.refuses = False
        self.made = 0
        self.stream = Stream("the user's")
        self.held = True
        self.host = ctypes.create_string_buffer(4096)
        fake = self

        class FakeEvent:
            def __init__(self, enable_timing: bool = False) -> None:
                assert enable_timing
                fake.made += 1

            def record(self) -> None:
                fake.said.append("event")
                self.at = fake.ms

            def query(self) -> bool:
                return not fake.held

            def elapsed_time(self, other: Any) -> float:
                return float(other.at - self.at)

        class FakeGraph:
            def replay(self) -> None:
                fake.said.append("replay")
                fake.ms += 0.25 * self.calls

        @contextlib.contextmanager
        def graph(g: Any) -> Iterator[None]:
            fake.said.append("capture")
            fake.stream = Stream("of the capture")
            before = fake.said.count("f")
            yield
            g.calls = fake.said.count("f") - before
            if fake.refuses:  # as torch 2.13: the stream is not put back
                raise RuntimeError("operation not permitted when stream is capturing\nmore")
            fake.stream = Stream("the user's")

        @contextlib.contextmanager
        def stream(s: Stream) -> Iterator[None]:
            before, fake.stream = fake.stream, s
            try:
                yield
            finally:
                fake.stream = before

        class OutOfMemoryError(RuntimeError):
            pass

        self.cuda = SimpleNamespace(
            current_device=lambda: 0,
            synchronize=lambda: fake.said.append("sync"),
            Event=FakeEvent,
            CUDAGraph=FakeGraph,
            graph=graph,
            stream=stream,
            current_stream=lambda: fake.stream,
            OutOfMemoryError=OutOfMemoryError,
            is_current_stream_capturing=lambda: False,
        )

    def empty(self, size: int, dtype: str, device: str) -> Any:
        self.said.append(f"empty {size}")
        return SimpleNamespace(zero_=lambda: self.said.append("flush"))


@pytest.fixture
def torch(monkeypatch: pytest.MonkeyPatch) -> FakeTorch:
    fake = FakeTorch()
    monkeypatch.setitem(sys.modules, "torch", fake)
    probe = SimpleNamespace(
        attribute=lambda i: ATTRIBUTES[i],
        synchronize=None,
        load_module=lambda image: fake.said.append("load " + image.decode().split()[3]),
        allocate_host=lambda size: ctypes.addressof(fake.host),
        launch=lambda kernel, grid, block, shared, stream, arguments: fake.said.append(
            f"{kernel.removeprefix('cuptiprof_')} {stream}"
        ),
    )
    seen: list[str] = []
    monkeypatch.setattr(
        driver_gpu,
        "_core",
        SimpleNamespace(
            ProbeDevice=lambda library, device, with_probes: probe, chip_name=lambda library, device: "GH100"
        ),
    )
    monkeypatch.setattr(driver_gpu, "nvml_clocks", lambda pci: seen.append(pci) or NoClocks("none"))  # type: ignore[func-returns-value]
    fake.pci = seen
    return fake


def make() -> TorchGpu:
    return TorchGpu(SimpleNamespace(library=None, simulated=False))  # type: ignore[arg-type]


def test_facts(torch: FakeTorch) -> None:
    gpu = make()
    assert gpu.attribute(DeviceAttribute.MULTIPROCESSOR_COUNT) == 132
    assert gpu.chip == "GH100" and gpu.clocks.why_not == "none" and torch.pci == ["00000000:3B:00.0"]


def test_a_cold_sample_by_events(torch: FakeTorch) -> None:
    gpu = make()

    def work() -> None:
        torch.said.append("f")
        torch.ms += 1

    call = MeasuredCall("f", work)
    Event().prepare(gpu, call, 1e6, True)
    assert torch.said[:8] == ["sync", "event", "event", "load sm_75", "hold 77", "event", "f", "event"]
    torch.said.clear()
    gpu.now = lambda: int(1e6 * torch.ms)
    samples = Event().rounds(gpu, [call], 2, True, lambda: None)[0]
    # Events are made before the first sample, by recording them: making one between two others would be in their time.
    assert torch.said[:3] == ["load sm_75", "event", "event"] and torch.made == 4
    # In the stream that is current the GPU waits until it has been given all.
    # Before that the SM clock is read on the GPU; never between two events.
    assert torch.said[3] == f"empty {2 * (50 << 20)}"
    sample = ["flush", "sync", "clock_stamp 77", "hold 77", "event", "f", "event"]
    assert torch.said[4:] == [*sample, *sample, "clock_stamp 77", "sync"]
    assert [s.value for s in samples] == [1e6, 1e6]
    Event().rounds(gpu, [call], 2, True, lambda: None)
    assert torch.made == 4  # the next block has the same ones


def test_a_graph_is_captured_after_waiting_and_replayed(torch: FakeTorch) -> None:
    gpu = make()
    call = MeasuredCall("f", lambda: torch.said.append("f"))
    Graph().prepare(gpu, call, 25_000, False)
    assert torch.said[:4] == ["sync", "capture", "f", "replay"]
    assert call.batch == 5  # 1.05 ms, as the replay of one takes 0.25 ms
    assert torch.said[-9:] == ["f", "f", "replay", "sync", "hold 77", "event", "replay", "event", "sync"]
    torch.said.clear()
    samples = Graph().rounds(gpu, [call], 1, False, lambda: None)[0]
    expected = ["load sm_75", "clock_stamp 77", "hold 77", "event", "replay", "event", "clock_stamp 77", "sync"]
    assert torch.said == expected and samples[0].value == 250_000


def test_what_torch_refuses_to_capture(torch: FakeTorch) -> None:
    torch.refuses = True
    with pytest.raises(BenchError, match="not permitted when stream is capturing") as caught:
        make().capture(lambda: None)
    assert "kernel" in caught.value.hint and "more" not in str(caught.value)
    assert torch.stream == "the user's"
    torch.cuda.is_current_stream_capturing = lambda: True
    with pytest.raises(BenchError, match="captured already"):
        make().capture(lambda: None)


def test_the_driver_alone_has_events(torch: FakeTorch) -> None:
    gpu = driver_gpu.DriverGpu(SimpleNamespace(library=None))  # type: ignore[arg-type]
    said, passed = [], [False, True]
    gpu._probe.make_event = lambda: said.append("make") or len(said)
    gpu._probe.record = lambda event, stream: said.append(f"record {event} in {stream}")
    gpu._probe.passed = lambda event: passed.pop(0)
    gpu._probe.elapsed_ns = lambda first, second: 1000.0 * (second - first)
    first, second = gpu.events(2)
    assert gpu.events(2) == [first, second]
    gpu.hold(5_000)
    gpu.hold(5_000)
    gpu.record(first)
    assert torch.said == ["load sm_75", "hold 0", "hold 0"] and said == ["make", "make", "record 1 in 0"]
    assert [gpu.passed(first), gpu.passed(first)] == [False, True] and gpu.elapsed_ns(first, second) == 1000.0


def test_a_stream_that_stays_dry_is_not_held_for_ever(torch: FakeTorch) -> None:
    gpu, torch.held = make(), False
    call = MeasuredCall("f", lambda: torch.said.append("f"))
    Event().prepare(gpu, call, 1e6, True)
    assert torch.said.count("f") < 20 and call.hold_ns <= 20_000_000


def test_memory_that_runs_out_during_a_capture_is_said_as_such(torch: FakeTorch) -> None:
    def work() -> None:
        raise torch.cuda.OutOfMemoryError("CUDA out of memory")

    with pytest.raises(torch.cuda.OutOfMemoryError):
        make().capture(work)
    assert torch.stream == "the user's"

    def silent() -> None:
        raise RuntimeError

    with pytest.raises(BenchError, match="RuntimeError"):
        make().capture(silent)


def test_other_programs_by_their_process_ids() -> None:
    class NVMLError(Exception):
        pass

    def others(*pids: int) -> list[int]:
        running = [SimpleNamespace(pid=p) for p in pids]
        nvml = SimpleNamespace(NVMLError=NVMLError, nvmlDeviceGetComputeRunningProcesses=lambda handle: running)
        return NvmlClocks(nvml, None).others()

    assert others(os.getpid(), 77_000_001) == [77_000_001] and others(os.getpid()) == []
    assert others(77_000_001) == []  # in a container NVML knows this program by another number
