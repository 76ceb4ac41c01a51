"""``CudaGpu`` without a GPU: each call it makes exists in the native module, and reaches the driver as it should."""

from __future__ import annotations

import inspect
import re
import threading

import pytest
from cuda_gpu import CudaGpu
from stand_in_driver import StandInDriver

from cuptiprof import _core
from cuptiprof.device.devices import SimulatedDevice
from cuptiprof.sim.sim_device import SimDevice


@pytest.fixture
def driver(sim: SimDevice) -> StandInDriver:
    return StandInDriver()


def test_the_driver_of_the_stand_in_has_the_native_signatures() -> None:
    methods = [n for n, f in vars(StandInDriver).items() if inspect.isfunction(f) and not n.startswith("_")]
    methods.remove("profiler")  # a call of libcuda's own
    assert len(methods) > 12
    for name in methods:
        (signature,) = re.findall(rf"{name}\((.*?)\) ->", getattr(_core.ProbeDevice, name).__doc__ or "")
        native = re.findall(r"(\w+): ", signature)
        assert native[1:] == list(inspect.signature(getattr(StandInDriver, name)).parameters)[1:], name


def test_a_kernel_is_loaded_once_even_by_many_threads(driver: StandInDriver) -> None:
    gpu = CudaGpu(SimulatedDevice(), driver, driver.profiler)
    before = gpu.executed()
    barrier = threading.Barrier(8)

    def work() -> None:
        barrier.wait()
        gpu.launch("k", count=10)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    gpu.prepare("k", "k", "j")  # loading one twice is refused
    assert gpu.executed() - before == 80


def test_what_hardware_would_refuse_is_refused_here(driver: StandInDriver) -> None:
    gpu = CudaGpu(SimulatedDevice(), driver, driver.profiler)
    with pytest.raises(AssertionError, match="while this thread captures"):
        gpu.graph(lambda stream: gpu.launch("not_prepared", stream=stream))
    with pytest.raises(AssertionError, match="no module"):
        driver.launch("unknown", (1, 1, 1), (1, 1, 1), 0, 0, [0, 0])
    gpu.launch_refused("k")
