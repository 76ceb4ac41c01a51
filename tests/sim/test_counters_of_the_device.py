"""The chip that was planned for, and what of its counters this device gives."""

from __future__ import annotations

import pytest
from counter_cases import ONE_PASS, OfRelease, counted, inst, machine, quiet_warnings

import cuptiprof
from cuptiprof.device.devices import SimulatedDevice
from cuptiprof.errors import MetricError
from cuptiprof.sim.sim_device import Fault, SimDevice

__all__ = ["machine"]

MISSING = "lts__t_sectors"


@pytest.mark.parametrize("strategy", ["replay", "iterate", "range"])
def test_launches_on_another_chip_are_counted_apart(machine: SimDevice, strategy: str) -> None:
    with cuptiprof.profile(device=SimulatedDevice(devices=2)):
        pass
    machine.inject(Fault.OTHER_CHIP, "A100", a=1)
    with cuptiprof.profile(device=SimulatedDevice(devices=2), metrics=ONE_PASS, strategy=strategy) as prof:
        for device in (0, 1, 1):
            machine.launch("warm", device=device)
            with cuptiprof.region("r"):
                machine.launch("k", device=device)
    result = prof.result()
    assert counted(result)["other_chip"] >= (2 if strategy == "range" else 4)
    assert "failed" not in counted(result) and any(
        "another chip than GH100" in n for n in result.metadata["counters"]["notes"]
    )
    assert set(result.metric_ranges["device"]) == {0}
    assert result.counters["inst_executed"][-1] == pytest.approx(inst(machine, "k"))


def test_the_chip_of_the_context_in_use_is_planned_for(machine: SimDevice) -> None:
    with cuptiprof.profile(device=SimulatedDevice(devices=2)):
        machine.inject(Fault.OTHER_CHIP, "A100", a=0)
        machine.launch("warm", device=1)
    with cuptiprof.profile(device=SimulatedDevice(devices=2), metrics=ONE_PASS) as prof:
        machine.launch("k", device=1)
    result = prof.result()
    assert result.metadata["counters"]["chip"] == "GH100" and not counted(result)


@pytest.mark.parametrize("strategy", ["replay", "range", "sample"])
def test_what_the_device_lacks_is_said_at_start(machine: SimDevice, strategy: str) -> None:
    """A MIG instance: its chip has the metric, and any plan without the device's own list would hold it."""
    machine.inject(Fault.UNAVAILABLE, MISSING)
    metrics = ["inst_executed", f"{MISSING}.sum"]
    machine.launch("warm")
    with pytest.raises(MetricError, match=f"GH100 cannot collect {MISSING}.sum") as caught:
        cuptiprof.profile(device="sim", metrics=metrics, strategy=strategy).start()
    assert "MIG" in caught.value.hint
    with cuptiprof.profile(device="sim", metrics=["inst_executed"], strategy="replay") as prof:
        machine.launch("k")
    assert not counted(prof.result())


def test_what_the_device_lacks_is_counted_where_it_cannot_be_asked(machine: SimDevice) -> None:
    machine.inject(Fault.UNAVAILABLE, MISSING)
    with quiet_warnings(), cuptiprof.profile(device="sim", metrics=[f"{MISSING}.sum"]) as prof:
        machine.launch("k")
    assert counted(prof.result()) == {"failed": 1}


@pytest.mark.parametrize("version", [130001, 130400])
@pytest.mark.parametrize("metric", ["pcie__read_bytes.sum", "nvlrx__bytes.sum"])
def test_links_are_counted_with_any_release(machine: SimDevice, version: int, metric: str) -> None:
    """Before CUDA 13.1 the device's list lacks them."""
    device = OfRelease(version)
    machine.launch("warm")
    with cuptiprof.profile(device=device, metrics=[metric]) as prof:
        machine.launch("k")
    assert not counted(prof.result()) and len(prof.result().metric_ranges) == 1


def test_the_list_is_asked_for_with_a_context_and_never_without(machine: SimDevice) -> None:
    library = SimulatedDevice().library
    assert cuptiprof._core.counter_availability(library) == (b"", False)
    machine.launch("warm")
    image, _ = cuptiprof._core.counter_availability(library)
    assert b"GH100" in image
