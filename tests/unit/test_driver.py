"""The driver's calls by name, on the stand-in's library, and the numbers of its attributes as NVIDIA's header has them."""

from __future__ import annotations

import ctypes
import enum
import re
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from cuptiprof.data.chips import BOARDS
from cuptiprof.device.driver import DeviceAttribute, Driver, DriverError, FunctionAttribute
from cuptiprof.sim.sim_device import SimDevice

FINDER = Path(__file__).resolve().parents[2] / "cmake" / "find_cuda_include.py"


def header() -> str:
    found = subprocess.run([sys.executable, str(FINDER)], capture_output=True, text=True, check=False).stdout.strip()
    if not found:
        pytest.skip("no CUDA headers on this machine")
    return next(Path(f, "cuda.h") for f in found.split(";") if Path(f, "cuda.h").is_file()).read_text()


@pytest.mark.parametrize(
    ("attributes", "prefix"), [(DeviceAttribute, "CU_DEVICE_ATTRIBUTE_"), (FunctionAttribute, "CU_FUNC_ATTRIBUTE_")]
)
def test_attributes_have_the_numbers_of_the_header(attributes: type[enum.IntEnum], prefix: str) -> None:
    theirs = {name: int(value) for name, value in re.findall(rf"\b{prefix}(\w+)\s*=\s*(\d+)", header())}
    assert len(theirs) > 5
    for ours in attributes:
        assert theirs[ours.name] == ours


def test_attributes_of_the_simulated_gpu(sim: SimDevice) -> None:
    driver = Driver(sim.library)
    assert driver.attribute(DeviceAttribute.MULTIPROCESSOR_COUNT) == BOARDS["H100"].sms
    assert driver.attribute(DeviceAttribute.COMPUTE_CAPABILITY_MAJOR) == 9
    driver.call("cuInit", 0)
    (gpu,) = driver.gpus()
    assert gpu["compute_capability"] == "9.0" and "cuDeviceGetAttribute" in gpu["error"]  # it has no compute mode


def test_errors_say_which_call_and_why(sim: SimDevice) -> None:
    driver = Driver(sim.library)
    with pytest.raises(DriverError, match=r"cuDeviceGet returned 101 \(a device that does not exist\)") as caught:
        driver.attribute(DeviceAttribute.L2_CACHE_SIZE, 7)
    assert "CUDA_VISIBLE_DEVICES" in caught.value.hint
    with pytest.raises(DriverError, match="cuNoSuchCall returned 500"):
        driver.call("cuNoSuchCall", ctypes.c_int())


def test_the_device_in_use_is_that_of_the_context(sim: SimDevice) -> None:
    sim.reset(devices=2)
    driver = Driver(sim.library)
    found = []

    def use(device: int | None) -> None:  # a thread that has no context yet
        if device is not None:
            sim.launch("k", device=device)
        found.append(driver.current_device())

    for device in (None, 1, 0):
        thread = threading.Thread(target=use, args=(device,))
        thread.start()
        thread.join()
    assert found == [0, 1, 0]

    class Fresh:  # as libcuda answers before cuInit
        def cuCtxGetCurrent(self, handle: object) -> int:
            return 3

    assert Driver(Fresh()).current_device() == 0  # type: ignore[arg-type]


def test_a_context_is_current_for_a_while(sim: SimDevice) -> None:
    driver = Driver(sim.library)
    sim.launch("the first launch makes the context")
    before = driver.current_context()
    assert before
    with driver.context(before):
        assert driver.current_context() == before
    assert driver.current_context() == before
