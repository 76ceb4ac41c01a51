"""One simulated device in a process: sessions share it with whatever else uses it."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator

import pytest

import cuptiprof
from cuptiprof.device.devices import SimulatedDevice
from cuptiprof.errors import CuptiError, CuptiprofError, DeviceError, SessionError
from cuptiprof.sim.sim_device import Fault, Op, SimDevice


@pytest.fixture
def machine() -> Iterator[SimDevice]:
    device = SimDevice()
    device.reset()
    yield device
    device.reset()  # refused if anything were left


class Launching:
    """Threads that launch in regions of their own until the end."""

    def __init__(self, device: SimDevice, count: int = 3) -> None:
        self._device = device
        self._stop = threading.Event()
        self._round = [threading.Event() for _ in range(count)]
        self._errors: list[BaseException] = []
        self._threads = [threading.Thread(target=self._work, args=(i,)) for i in range(count)]

    def _work(self, i: int) -> None:
        try:
            while not self._stop.is_set():
                with cuptiprof.region(f"t{i}"):
                    self._device.launch(f"t{i}", count=50)
                self._round[i].set()
        except BaseException as error:
            self._errors.append(error)

    def wait_for_a_round(self) -> None:
        """A whole one of each thread: the first to end may have begun before."""
        for _ in range(2):
            for done in self._round:
                done.clear()
            for done in self._round:
                assert done.wait(30)

    def __enter__(self) -> Launching:
        for t in self._threads:
            t.start()
        self.wait_for_a_round()
        return self

    def __exit__(self, *error: object) -> None:
        self._stop.set()
        for t in self._threads:
            t.join()
        assert not self._errors


def test_sessions_beside_running_threads(machine: SimDevice) -> None:
    executed = machine.truth()["kernels"]
    with Launching(machine) as launching:
        for _ in range(30):
            with cuptiprof.profile(device="sim", activities=["kernel"]) as prof:
                launching.wait_for_a_round()
            result = prof.result()
            assert len(result.kernels) >= 150
            assert set(result.kernels["region"]) <= {"t0", "t1", "t2", ""}
            now = machine.truth()["kernels"]
            assert now > executed  # nobody made the machine anew
            executed = now


def test_other_chips_beside_running_threads(machine: SimDevice) -> None:
    with Launching(machine) as launching:
        for chip in ("A100", "H100") * 10:
            with cuptiprof.profile(device=f"sim:{chip}", activities=["kernel"]) as prof:
                launching.wait_for_a_round()
            result = prof.result()
            assert result.metadata["simulated_chip"] == chip
            assert set(result.devices["name"]) <= {next(iter(result.devices["name"]))}
            assert len(result.kernels) >= 150


def test_a_device_that_is_something_else_is_refused_while_in_use(machine: SimDevice) -> None:
    with cuptiprof.profile(device="sim") as prof:
        machine.launch("before")
        for other in ("sim:A100", "replay:does_not_matter"):
            with pytest.raises(CuptiprofError):
                cuptiprof.profile(device=other).start()
        with pytest.raises(DeviceError, match="in use") as caught:
            SimulatedDevice(devices=2)
        assert "2 x H100" in str(caught.value) and "stop the running session" in caught.value.hint
        with pytest.raises(SessionError, match="another cuptiprof session"):
            cuptiprof.profile(device="sim").start()
        machine.launch("after")
    assert list(prof.result().kernels["name"]) == ["before", "after"] and not prof.result().losses


def test_a_device_is_what_it_was_opened_as_when_its_session_starts(machine: SimDevice) -> None:
    a100, h100 = SimulatedDevice("A100"), SimulatedDevice("H100")  # which made the machine an H100
    for device, name in ((a100, "A100"), (h100, "H100"), (a100, "A100")):
        with cuptiprof.profile(device=device) as prof:
            machine.launch("k")
        assert name in prof.result().devices["name"][0]
    with cuptiprof.profile(device=a100) as prof, pytest.raises(DeviceError):
        cuptiprof.profile(device=h100).start()


def test_what_was_there_before_is_there_in_the_session(machine: SimDevice) -> None:
    machine.call(Op.GRAPH_BEGIN_CAPTURE, graph_id=3, stream=20)
    machine.launch("node", stream=20, count=2)
    machine.call(Op.GRAPH_END_CAPTURE, graph_id=3, stream=20)
    with cuptiprof.profile(device="sim") as prof:
        machine.call(Op.GRAPH_LAUNCH, graph_id=3)
    assert list(prof.result().kernels["name"]) == ["node"] * 2


def test_a_reset_waits_for_calls_and_refuses_when_one_takes_long(machine: SimDevice) -> None:
    machine.launch("long", duration_ns=3_500_000_000)
    waiting = threading.Thread(target=machine.synchronize)
    waiting.start()
    while machine.truth()["api_calls"] < 2:
        pass  # until it is inside
    with pytest.raises(DeviceError, match="waits in a call"):
        machine.reset(chip="A100")
    waiting.join()
    assert machine.truth()["kernels"] == 1
    machine.reset(chip="A100")
    assert machine.truth()["kernels"] == 0


@pytest.mark.parametrize(
    "call",
    [
        "cuptiSubscribe",
        "cuptiActivityRegisterCallbacks",
        "cuptiActivityEnable",
        "cuptiEnableCallback",
    ],
)
def test_a_failed_start_leaves_nothing(machine: SimDevice, call: str) -> None:
    with Launching(machine) as launching:
        machine.inject(Fault.FAIL_CALL, call, a=8)
        for _ in range(3):
            with pytest.raises(CuptiError):
                cuptiprof.profile(device="sim", activities=["kernel"]).start()
            launching.wait_for_a_round()
        machine.clear_faults()
        for device in ("sim:A100", "sim"):
            with cuptiprof.profile(device=device, activities=["kernel"]) as prof:
                launching.wait_for_a_round()
            assert len(prof.result().kernels) >= 150


def test_a_session_that_is_dropped_gives_the_device_back(machine: SimDevice) -> None:
    prof = cuptiprof.profile(device="sim").start()
    machine.launch("k")
    with pytest.raises(DeviceError):
        machine.reset(chip="A100")
    del prof
    gc.collect()
    machine.reset(chip="A100")
