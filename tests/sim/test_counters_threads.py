"""Launches that hang, calls in a forked child, and names at the addresses of others.

The stand-in alone can be made to do these: hardware would hang, die in the child, or choose its own addresses.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
import warnings
from typing import Any

import numpy as np
import pytest
from counter_cases import ONE_PASS, SEVERAL, STRATEGIES, counted, inst, machine
from own_time import takes_less_than

import cuptiprof
from cuptiprof.errors import SessionError
from cuptiprof.sim.sim_device import Op, SimDevice

__all__ = ["machine"]


def test_a_communicating_kernel_that_hangs_lets_the_program_go_on(machine: SimDevice) -> None:
    prof = cuptiprof.profile(device="sim", metrics=SEVERAL, strategy="replay", communicating=True).start()
    machine.launch("before")
    failed: list[Exception] = []

    def hang() -> None:
        try:
            machine.launch("ncclDevKernel_AllReduce")
        except Exception as error:
            failed.append(error)

    thread = threading.Thread(target=hang)
    thread.start()
    time.sleep(0.1)
    with takes_less_than(1.5):
        machine.launch("beside", stream=9, context=77, count=20)  # another context: not held by the hanging one
    thread.join()
    machine.launch("after")
    result = prof.stop()
    assert failed  # the simulated GPU itself reports a launch that timed out
    names = list(result.metric_ranges["name"])
    assert names[0] == "before" and names[-1] == "after" and "ncclDevKernel_AllReduce" not in names
    assert counted(result)["not_run"] == 1
    assert len(names) + sum(counted(result).values()) == 23


def test_stop_while_a_launch_hangs_and_a_session_after_it(machine: SimDevice) -> None:
    prof = cuptiprof.profile(device="sim", metrics=SEVERAL, strategy="replay", communicating=True).start()
    machine.launch("before")
    thread = threading.Thread(target=lambda: _try(lambda: machine.launch("nccl_hangs")))
    thread.start()
    time.sleep(0.05)
    result = prof.stop()
    assert list(result.metric_ranges["name"]) == ["before"]
    thread.join()
    for strategy in ("replay", "range"):
        # The context that hung is free again, and nobody waits for what is over.
        with takes_less_than(1.5), cuptiprof.profile(device="sim", metrics=ONE_PASS, strategy=strategy) as again:
            machine.launch("after")
            with cuptiprof.region("r"):
                machine.launch("after")
        assert not counted(again.result())
        np.testing.assert_allclose(again.result().counters["inst_executed"], inst(machine, "after"))


def _try(function: Any) -> None:
    with contextlib.suppress(cuptiprof.errors.CuptiprofError):
        function()


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_fork_in_the_middle(machine: SimDevice, strategy: str) -> None:
    """The child touches neither the parent's profiler nor its threads, and ends by itself."""
    prof = cuptiprof.profile(device="sim", metrics=ONE_PASS, strategy=strategy).start()
    machine.launch("warm")
    with cuptiprof.region("r"):
        machine.launch("k")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # threads and fork
            child = os.fork()
        if child == 0:
            before = machine.truth()["ranges_collected"]
            with cuptiprof.region("child"):
                machine.launch("in the child")
            code = 0 if machine.truth()["ranges_collected"] == before else 3
            try:
                prof.stop()
                code = 4
            except SessionError:
                pass
            finally:
                prof._session = None  # destroys the native session
                os._exit(code)
    deadline = time.monotonic() + 10
    while (done := os.waitpid(child, os.WNOHANG)) == (0, 0) and time.monotonic() < deadline:
        time.sleep(0.01)
    if done == (0, 0):
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        pytest.fail("the child hangs")
    assert os.waitstatus_to_exitcode(done[1]) == 0
    result = prof.stop()
    if strategy == "range":
        np.testing.assert_allclose(result.counters["inst_executed"], [inst(machine, "k")])
    elif strategy != "sample":
        assert sorted(str(n) for n in result.metric_ranges["name"]) == ["k", "warm"]


@pytest.mark.parametrize("pause", [False, True])
def test_a_name_at_the_address_of_an_unloaded_one_is_judged_anew(machine: SimDevice, pause: bool) -> None:
    """Verdicts are remembered by address, and the simulated driver gives addresses to other names at once."""
    with cuptiprof.profile(device="sim", metrics=ONE_PASS, strategy="replay", kernels="odd*") as prof:
        for i in range(20):
            machine.launch(f"odd{i}" if i % 2 else f"even{i}", count=3)
            machine.synchronize()
            if pause:
                prof.pause()
            machine.call(Op.MODULE_UNLOAD)
            if pause:
                prof.resume()
    names = [str(n) for n in prof.result().metric_ranges["name"]]
    assert names == [f"odd{i}" for i in range(1, 20, 2) for _ in range(3)]
