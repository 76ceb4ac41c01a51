"""Caches and clocks while counting: ncu's options, from CUDA 13.4 on."""

from __future__ import annotations

import ctypes
import subprocess
import sys
from pathlib import Path

import pytest
from counter_cases import ONE_PASS, SEVERAL, STRATEGIES, OfRelease, counted, machine, quiet_warnings

import cuptiprof
from cuptiprof.errors import CuptiError, MetricError
from cuptiprof.sim.sim_device import Fault, SimDevice

__all__ = ["machine"]

NEW, OLD = 130400, 130001


class _Controls(ctypes.Structure):
    _fields_ = [(n, ctypes.c_uint32) for n in ("cache", "locked", "locks", "unlocks")]


def controls(machine: SimDevice) -> tuple[int, int, int, int]:
    """Cache mode, clock mode now, locks and unlocks so far."""
    c = _Controls()
    machine._lib.cuptisim_get_controls(ctypes.byref(c))
    return c.cache, c.locked, c.locks, c.unlocks


@pytest.mark.parametrize("warm", [True, False])
@pytest.mark.parametrize("metrics", [ONE_PASS, SEVERAL])
def test_replay_does_as_ncu_does(machine: SimDevice, metrics: list[str], warm: bool) -> None:
    device = OfRelease(NEW)
    if warm:
        machine.launch("warm")
    with cuptiprof.profile(device=device, metrics=metrics, strategy="replay") as prof:
        machine.launch("k")
        assert controls(machine) == (1, 1, 1, 0)
    assert controls(machine) == (1, 0, 1, 1)
    about = prof.result().metadata["counters"]
    assert (about["cache_control"], about["clock_control"]) == ("all", "base") and not counted(prof.result())
    assert "the clocks were held at base frequency" in about["notes"] and not any("L2" in n for n in about["notes"])


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_what_is_asked_for_is_done_with_any_strategy(machine: SimDevice, strategy: str) -> None:
    device = OfRelease(NEW)
    machine.launch("warm")
    caches = "none" if strategy == "sample" else "all"
    for given, expected in (({"cache_control": caches, "clock_control": "boost"}, (int(caches == "all"), 2)),
                            ({"cache_control": "none", "clock_control": "none"}, (0, 0)),
                            ({}, (1, 1) if strategy == "replay" else (0, 0))):  # fmt: skip
        with (
            quiet_warnings(),
            cuptiprof.profile(device=device, metrics=ONE_PASS, strategy=strategy, **given),
            cuptiprof.region("r"),
        ):
            machine.launch("k")
            cache, locked, _, _ = controls(machine)
            assert locked == expected[1] and (strategy == "sample" or cache == expected[0])
        assert controls(machine)[1] == 0


def test_an_older_library_says_what_it_cannot(machine: SimDevice) -> None:
    with cuptiprof.profile(device="sim", metrics=SEVERAL, strategy="replay") as prof:
        machine.launch("k")
    about = prof.result().metadata["counters"]
    assert (about["cache_control"], about["clock_control"]) == ("none", "none")
    assert any("earlier ones left in L2" in n and "13.4" in n for n in about["notes"])
    assert any("clocks were not held" in n and "13.4" in n for n in about["notes"])
    for given in ({"cache_control": "all"}, {"clock_control": "base"}, {"clock_control": "boost"}):
        with pytest.raises(MetricError, match=r"13\.4 or newer; this is 13\.0") as caught:
            cuptiprof.profile(device="sim", metrics=ONE_PASS, **given).start()
        assert "nvidia-cuda-cupti>=13.4" in caught.value.hint
    with quiet_warnings():
        cuptiprof.profile(device="sim", metrics=ONE_PASS, cache_control="none", clock_control="none").start().stop()


def test_clocks_that_cannot_be_held(machine: SimDevice) -> None:
    """MIG, or a platform without: said where nobody asked, an error where somebody did."""
    device = OfRelease(NEW)
    machine.launch("warm")
    machine.inject(Fault.FAIL_CALL, "cuptiClockControlLock", a=27)
    with cuptiprof.profile(device=device, metrics=ONE_PASS) as prof:
        machine.launch("k")
    about = prof.result().metadata["counters"]
    assert about["clock_control"] == "none" and any("CUPTI_ERROR_NOT_SUPPORTED" in n for n in about["notes"])
    assert not counted(prof.result())
    with pytest.raises(CuptiError) as caught:
        cuptiprof.profile(device=device, metrics=ONE_PASS, clock_control="base").start()
    assert (caught.value.code, caught.value.call) == (27, "cuptiClockControlLock")
    assert controls(machine)[1] == 0


def test_clocks_of_others_stay(machine: SimDevice) -> None:
    device = OfRelease(NEW)
    machine.launch("warm")
    machine.inject(Fault.CLOCKS_LOCKED)
    with cuptiprof.profile(device=device, metrics=ONE_PASS) as prof:
        machine.launch("k")
    about = prof.result().metadata["counters"]
    assert about["clock_control"] == "none" and any("by somebody else" in n for n in about["notes"])
    assert controls(machine)[2:] == (0, 0)


def test_a_start_that_fails_gives_the_clocks_back(machine: SimDevice) -> None:
    device = OfRelease(NEW)
    machine.launch("warm")
    machine.inject(Fault.FAIL_CALL, "cuptiPmSamplingSetConfig", a=7)
    with pytest.raises(CuptiError):
        cuptiprof.profile(device=device, metrics=ONE_PASS, strategy="sample", clock_control="base").start()
    assert controls(machine) == (0, 0, 1, 1)


def test_a_program_that_ends_inside_a_session_gives_the_clocks_back() -> None:
    """CUPTI does not: the lock outlives the process."""
    code = (
        "import ctypes, sys; sys.path.insert(0, sys.argv[1])\n"
        "from counter_cases import OfRelease\n"
        "import cuptiprof\n"
        "device = OfRelease(130400); device.sim.launch('warm')\n"
        "ctypes.CDLL(None).on_exit(device.sim._lib.cuptisim_say_controls, None)\n"  # runs after what is registered later
        "prof = cuptiprof.profile(device=device, metrics=['ipc']).start()\n"
        "device.sim.launch('k'); device.sim._lib.cuptisim_say_controls()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(Path(__file__).parent)], capture_output=True, text=True, timeout=60
    )
    assert done.stdout.split("\n")[:2] == ["locked 1, 1 locks, 0 unlocks", "locked 0, 1 locks, 1 unlocks"], done
