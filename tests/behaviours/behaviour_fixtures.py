"""``gpu``: each scenario runs on the stand-in, over the driver's calls given to the stand-in, and on the first real GPU.

No conftest.py: tests import tests/conftest.py by that name.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import pytest
from cuda_gpu import CudaGpu, DriverProfiler
from gpu import ScenarioGpu
from scenarios import ONE_PASS
from stand_in_driver import StandInDriver
from stand_in_gpu import StandInGpu

import cuptiprof
from cuptiprof import _core
from cuptiprof.counters.live import CounterWarning
from cuptiprof.device.devices import SimulatedDevice, open_device
from cuptiprof.device.locate import driver_present
from cuptiprof.sim.sim_device import SimDevice

_HARDWARE = [pytest.mark.gpu, pytest.mark.skipif(not driver_present(), reason="no NVIDIA driver on this machine")]


@pytest.fixture(scope="session")
def cuda_gpu() -> Iterator[CudaGpu]:
    """The first real GPU; its context and kernels last for the run."""
    device = open_device("cuda")
    probe = _core.ProbeDevice(device.library, 0)
    yield CudaGpu(device, probe, DriverProfiler(probe.context))
    probe.synchronize()


@pytest.fixture(params=["sim", "driver", pytest.param("cuda", marks=_HARDWARE)])
def gpu(request: pytest.FixtureRequest) -> Iterator[ScenarioGpu]:
    """The GPU of a scenario: "sim" and "driver" are the stand-in, fresh."""
    if request.param == "cuda":
        hardware: CudaGpu = request.getfixturevalue("cuda_gpu")
        yield hardware
        hardware.synchronize()
        return
    sim = SimDevice()
    sim.clear_faults()
    sim.reset()
    if request.param == "sim":
        yield StandInGpu()
    else:
        driver = StandInDriver()
        yield CudaGpu(SimulatedDevice(), driver, driver.profiler)
    sim.reset()  # refused if the scenario left anything switched on


_denied: dict[bool, str] = {}


def why_denied(gpu: ScenarioGpu) -> str:
    """What a session says when the driver gives counters to administrators only; "" when it gives them to us."""
    if gpu.simulated not in _denied:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            with cuptiprof.profile(device=gpu.device, metrics=ONE_PASS) as prof:
                gpu.launch("asked_for_counters")
        said = [str(w.message) for w in caught if issubclass(w.category, CounterWarning)]
        assert len(prof.result().kernels) == 1
        assert len(prof.result().metric_ranges) == 1 or "INSUFFICIENT_PRIVILEGES" in said[0], said
        _denied[gpu.simulated] = "" if len(prof.result().metric_ranges) else said[0]
    return _denied[gpu.simulated]


@pytest.fixture
def counting(gpu: ScenarioGpu) -> ScenarioGpu:
    """``gpu``, where its counters may be read."""
    if reason := why_denied(gpu):
        pytest.skip(f"counters are denied here: {reason}")
    return gpu
