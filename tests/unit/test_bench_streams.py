"""Events and graphs of functions of CuPy, Numba, JAX: in which stream, against modules with the calls of the real ones.

As in cupy/cuda/stream.pyx (v14): ``get_current_stream()``, ``Stream(non_blocking=)`` that is current inside ``with`` and has ``ptr``; the
default one's is 0, the per-thread default's 2. As in numba_cuda/numba/cuda/cudadrv/driver.py: ``Stream`` has ``handle`` and ``int()``.
"""

from __future__ import annotations

import ctypes
import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

import cuptiprof
from cuptiprof.bench import Count
from cuptiprof.bench.open_gpu import open_gpu
from cuptiprof.bench.sampling import Graph, MeasuredCall
from cuptiprof.device import driver_gpu
from cuptiprof.device.devices import SimulatedDevice
from cuptiprof.device.driver_gpu import DriverGpu
from cuptiprof.device.streams import handle_of
from cuptiprof.errors import BenchError, CuptiError


class FakeDriver:
    """What ``_core.ProbeDevice`` is asked, with CUDA's rules of capturing: no default stream, no waiting."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.capturing = 0
        self.broken = False
        self.host = ctypes.create_string_buffer(4096)

    def begin_capture(self, stream: int) -> None:
        if stream in (0, 1):
            raise CuptiError("cuStreamBeginCapture returned CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED")
        self.said.append(f"begin {stream}")
        self.capturing, self.broken = stream, False

    def end_capture(self, stream: int) -> int:
        self.said.append(f"end {stream}")
        assert self.capturing == stream
        self.capturing = 0
        if self.broken:
            raise CuptiError("cuStreamEndCapture returned CUDA_ERROR_STREAM_CAPTURE_INVALIDATED")
        return 55

    def launch_graph(self, graph: int, stream: int) -> None:
        self.said.append(f"replay {graph} in {stream}")

    def synchronize(self) -> None:
        self.said.append("sync")

    def make_event(self) -> int:
        return 1

    def record(self, event: int, stream: int) -> None:
        self.said.append(f"event in {stream}")

    def work(self, stream: int) -> None:
        self.said.append(f"f in {stream}")


def fake_cupy(driver: FakeDriver) -> Any:
    module: Any = ModuleType("cupy")
    current: list[Any] = []

    class Stream:
        made = 0

        def __init__(self, null: bool = False, non_blocking: bool = False, ptds: bool = False) -> None:
            Stream.made += not (null or ptds)
            assert null or ptds or non_blocking  # one that waits for the default stream cannot be captured beside it
            self.ptr = 0 if null else 2 if ptds else 100 + Stream.made

        def __enter__(self) -> Stream:
            current.append(self)
            return self

        def __exit__(self, *error: object) -> None:
            current.pop()

        def synchronize(self) -> None:
            driver.said.append(f"wait {self.ptr}")

    module.cuda = SimpleNamespace(Stream=Stream, get_current_stream=lambda: current[-1])
    current.append(Stream(null=True))
    return module


class NumbaStream:
    def __init__(self, value: int) -> None:
        self.handle = ctypes.c_void_p(value)

    def __int__(self) -> int:
        return self.handle.value or 0


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> FakeDriver:
    for name in ("cupy", "jax", "numba.cuda", "torch"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return FakeDriver()


def gpu_of(driver: FakeDriver, **more: Any) -> DriverGpu:
    return DriverGpu(SimpleNamespace(library=None), probe=driver, **more)  # type: ignore[arg-type]


def test_a_cupy_function_of_the_default_stream(driver: FakeDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is called in a stream of CuPy's own, once before the capture: then its memory pool has what the capture needs."""
    cupy = fake_cupy(driver)
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    gpu = gpu_of(driver)
    replay = gpu.capture(lambda: driver.work(cupy.cuda.get_current_stream().ptr))
    replay()
    own = ["f in 101", "wait 101", "sync", "begin 101", "f in 101", "end 101"]
    assert driver.said == [*own, "replay 55 in 0"] and cupy.cuda.get_current_stream().ptr == 0


@pytest.mark.parametrize("per_thread", [False, True])
def test_cupys_current_stream_is_where_events_and_graphs_go(
    driver: FakeDriver, monkeypatch: pytest.MonkeyPatch, per_thread: bool
) -> None:
    cupy = fake_cupy(driver)
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    with cupy.cuda.Stream(ptds=True) if per_thread else cupy.cuda.Stream(non_blocking=True) as s:
        gpu = gpu_of(driver)
        gpu.record(gpu.events(1)[0])
        gpu.capture(lambda: driver.work(cupy.cuda.get_current_stream().ptr))()
    assert s.ptr == (2 if per_thread else 101)
    expected = ["event in {}", "sync", "begin {}", "f in {}", "end {}", "replay 55 in {}"]
    assert driver.said == [line.format(s.ptr) for line in expected]


def test_a_stream_of_numbas_is_said(driver: FakeDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "numba.cuda", ModuleType("numba.cuda"))
    gpu = gpu_of(driver, stream=handle_of(NumbaStream(77)))
    gpu.capture(lambda: driver.work(77))()
    assert driver.said == ["sync", "begin 77", "f in 77", "end 77", "replay 55 in 77"]
    for stream in (0, 1):
        with pytest.raises(BenchError, match="default stream cannot be captured") as caught:
            gpu_of(driver, stream=handle_of(NumbaStream(stream))).capture(lambda: None)
        assert "cuda.stream()" in caught.value.hint


@pytest.mark.parametrize(("library", "hint"), [("jax", 'strategy="kernel"'), ("", "stream=")])
def test_what_cannot_be_captured_is_refused_before_it_is_called(
    driver: FakeDriver, monkeypatch: pytest.MonkeyPatch, library: str, hint: str
) -> None:
    if library:
        monkeypatch.setitem(sys.modules, library, ModuleType(library))
    call = MeasuredCall("f", lambda: driver.work(0))
    with pytest.raises(BenchError, match="default stream") as caught:
        Graph().prepare(gpu_of(driver), call, 1e4, False)
    assert hint in caught.value.hint and not driver.said


def test_a_function_that_breaks_its_capture(driver: FakeDriver) -> None:
    def waits() -> None:
        driver.broken = True
        raise OSError("cudaErrorStreamCaptureUnsupported: operation not permitted when stream is capturing\nmore")

    def fails() -> None:
        raise ValueError("mine")

    def interrupted() -> None:
        driver.broken = True
        raise KeyboardInterrupt

    def silent() -> None:
        driver.broken = True

    gpu = gpu_of(driver, stream=9)
    with pytest.raises(BenchError, match="not permitted when stream is capturing") as caught:
        gpu.capture(waits)
    assert "more" not in str(caught.value) and isinstance(caught.value.__cause__, OSError)
    with pytest.raises(ValueError, match="mine"):  # not the driver's doing
        gpu.capture(fails)
    with pytest.raises(KeyboardInterrupt):
        gpu.capture(interrupted)
    with pytest.raises(BenchError, match="INVALIDATED"):
        gpu.capture(silent)
    assert driver.capturing == 0 and driver.said.count("end 9") == 4


def test_handles() -> None:
    class Core:
        def __init__(self, version: int = 0) -> None:
            self.version = version

        def __cuda_stream__(self) -> tuple[int, int]:
            return self.version, 4711

    assert handle_of(Core()) == 4711 and handle_of(12) == 12 and handle_of(NumbaStream(0)) == 0
    assert handle_of(SimpleNamespace(cuda_stream=5)) == 5 and handle_of(SimpleNamespace(ptr=6)) == 6
    for wrong in ("s", 1.5, True, object(), Core(1)):
        with pytest.raises(BenchError):
            handle_of(wrong)


def test_a_stream_that_is_named_goes_before_pytorchs(driver: FakeDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program may use both: what is measured is in the stream that was said."""
    from cuptiprof.bench import open_gpu as opening
    from cuptiprof.device.devices import CudaDevice

    torch = SimpleNamespace(cuda=SimpleNamespace(is_available=lambda: True))
    monkeypatch.setitem(sys.modules, "torch", torch)  # type: ignore[arg-type]
    monkeypatch.setattr(opening, "TorchGpu", lambda device: "PyTorch's")
    monkeypatch.setattr(opening, "Driver", lambda: SimpleNamespace(current_device=lambda: 0))
    monkeypatch.setattr(driver_gpu, "_core", SimpleNamespace(ProbeDevice=lambda *a, **k: driver))
    device = CudaDevice.__new__(CudaDevice)
    device.library = None  # type: ignore[assignment]
    with open_gpu(device) as gpu:
        assert gpu == "PyTorch's"
    with open_gpu(device, NumbaStream(33)) as gpu:
        assert isinstance(gpu, DriverGpu) and gpu.timed_stream() == 33


@pytest.mark.parametrize("strategy", ["event", "graph"])
def test_on_the_simulated_device(strategy: str) -> None:
    machine = SimulatedDevice(virtual_clock=True)

    def work() -> None:
        machine.sim.launch("k", duration_ns=50_000, stream=9)

    options: Any = {"device": machine, "strategy": strategy, "stop": Count(40)}
    m = cuptiprof.bench(work, **options, stream=9)
    assert m.median == pytest.approx(50_000, rel=0.05)
    with pytest.raises(BenchError, match="not in the stream"):
        cuptiprof.bench(work, **options)
    with pytest.raises(BenchError, match="no stream"):
        cuptiprof.bench(work, **options, stream="nine")
