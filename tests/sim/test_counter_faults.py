"""The simulated device's range profiler misused, refused, and under many threads."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pytest
from counter_abi import CounterApi, refused
from counter_objects import (
    HARDWARE_BUSY,
    INSUFFICIENT_PRIVILEGES,
    INVALID_OPERATION,
    INVALID_PARAMETER,
    KERNEL_REPLAY,
    NOT_INITIALIZED,
    ONE_PASS,
    OUT_OF_MEMORY,
    SAMPLING,
    TWO_PASSES,
    UNKNOWN,
    USER,
    USER_REPLAY,
    Host,
    Ranges,
)

from cuptiprof.errors import DeviceError
from cuptiprof.sim.sim_device import Fault, SimDevice


@pytest.fixture
def api(sim: SimDevice) -> CounterApi:
    return CounterApi()


UNINITIALISED = """
import sys
sys.path.append(sys.argv[1])
from counter_abi import CounterApi, CuptiFailed
from cuptiprof.sim.sim_device import SimDevice
device = SimDevice()
device.reset()
device.launch("warm up")
api = CounterApi()
try:
    api.call("cuptiRangeProfilerEnable", context=api.context())
except CuptiFailed as e:
    print(e.code)
"""


def test_the_profiler_must_be_initialised_first() -> None:
    """In a process of its own: once initialised, a library stays so."""
    command = [sys.executable, "-c", UNINITIALISED, str(Path(__file__).parent)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == str(NOT_INITIALIZED), done.stderr


def test_wrong_order(api: CounterApi, sim: SimDevice) -> None:
    sim.launch("warm up")
    ranges = Ranges(api, ONE_PASS, mode=USER, replay=USER_REPLAY)
    for wrong in (ranges.stop, ranges.pop, lambda: ranges.push("a")):
        with refused(INVALID_OPERATION):
            wrong()
    with refused(INVALID_OPERATION):
        api.call("cuptiRangeProfilerEnable", context=api.context())
    ranges.start()
    for wrong in (ranges.start, ranges.pop, ranges.decode, ranges.set_config):
        with refused(INVALID_OPERATION):
            wrong()
    with pytest.raises(DeviceError, match="in use"):
        sim.reset()
    ranges.push("open")
    with refused(INVALID_OPERATION):
        ranges.stop()
    ranges.pop()
    ranges.stop()
    ranges.disable()
    for wrong in (ranges.start, ranges.disable):
        with refused(INVALID_PARAMETER):
            wrong()


@pytest.mark.parametrize(
    "change",
    [
        {"range": USER, "replay": KERNEL_REPLAY},
        {"max_ranges": 0},
        {"levels": 2},
        {"min_level": 0},
        {"pass_index": 2},
        {"config_size": 20},
        {"image_size": 20},
        {"replay": 9},
    ],
)
def test_wrong_configurations(api: CounterApi, sim: SimDevice, change: dict[str, int]) -> None:
    sim.launch("warm up")
    ranges = Ranges(api, TWO_PASSES)
    with refused(INVALID_PARAMETER):
        ranges.set_config(**change)
    with refused(INVALID_PARAMETER):
        api.call("cuptiProfilerHostEvaluateToGpuValues", object=ranges.host.object, image=ranges.data, image_size=30)


def test_a_sampling_configuration_is_not_one_for_ranges(api: CounterApi, sim: SimDevice) -> None:
    sim.launch("warm up")
    ranges = Ranges(api, ONE_PASS)
    host = Host(api, kind=SAMPLING)
    host.add(ONE_PASS)
    image = host.image()
    with refused(INVALID_PARAMETER):
        ranges.set_config(config=image, config_size=len(image))


@pytest.mark.parametrize(
    ("fault", "a", "code"),
    [
        (Fault.NO_PRIVILEGES, 1, INSUFFICIENT_PRIVILEGES),
        (Fault.COUNTERS_BUSY, 1, HARDWARE_BUSY),
        *[(Fault.NO_COUNTERS, code, code) for code in (33, 40, 41, 43)],
    ],
)
def test_machines_that_give_no_counters(api: CounterApi, sim: SimDevice, fault: Fault, a: int, code: int) -> None:
    sim.launch("warm up")
    api.call("cuptiProfilerInitialize")
    assert api.call("cuptiProfilerDeviceSupported", device=0).supported == 3
    sim.inject(fault, a=a)
    for name, fields in (
        ("cuptiRangeProfilerEnable", {"context": api.context()}),
        ("cuptiPmSamplingEnable", {"device": 0}),
        ("cuptiProfilerGetCounterAvailability", {}),
        ("cuptiPmSamplingGetCounterAvailability", {}),
    ):
        with refused(code):
            api.call(name, **fields)
    assert api.call("cuptiProfilerDeviceSupported", device=0).supported == (1 if fault == Fault.NO_COUNTERS else 3)
    Host(api).add(ONE_PASS)  # planning needs no permission
    sim.clear_faults()
    assert api.call("cuptiProfilerGetCounterAvailability").image_size > 0


def test_any_function_can_be_made_to_fail(api: CounterApi, sim: SimDevice) -> None:
    sim.launch("warm up")
    ranges = Ranges(api, ONE_PASS)
    for name in ("Start", "DecodeData", "Disable"):
        sim.inject(Fault.FAIL_CALL, f"cuptiRangeProfiler{name}", a=UNKNOWN, c=1)
        with refused(UNKNOWN):
            ranges.do(name)
    sim.inject(Fault.FAIL_CALL, "cuptiProfilerHostInitialize", a=OUT_OF_MEMORY, c=1)
    with refused(OUT_OF_MEMORY):
        Host(api)


def test_threads_launch_into_one_profiled_context(api: CounterApi, sim: SimDevice) -> None:
    sim.launch("warm up")
    sim.set_counter("sm__inst_executed", 7)
    ranges = Ranges(api, ["sm__inst_executed.sum"], rows=2000, max_ranges=2000)
    ranges.start()
    work = [threading.Thread(target=lambda: sim.launch("k", count=200)) for _ in range(8)]
    for t in work:
        t.start()
    for t in work:
        t.join()
    ranges.stop()
    assert (ranges.decode(), ranges.count()) == (0, 1600)
    assert sorted(int(ranges.name(i)) for i in range(1600)) == list(range(1600))
    assert {ranges.values(i)[0] for i in range(1600)} == {7}
