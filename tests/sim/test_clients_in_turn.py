"""Clients like Kineto (no subscription, own buffers, own clock, nothing ever put back) and like NVRx (own buffers, flushes as it
goes) before, beside and after our sessions, in random orders."""

from __future__ import annotations

import ctypes
import random
import time
import warnings
from pathlib import Path
from sys import path
from typing import ClassVar

import pytest
from other_client import FORCED, OtherClient

import cuptiprof
from cuptiprof.device.devices import open_device
from cuptiprof.sim.sim_device import SimDevice

path.insert(0, str(Path(__file__).parent.parent))
from random_programs.surroundings import cupti_settings

_CLOCK = ctypes.CFUNCTYPE(ctypes.c_uint64)
NOT_LOST = ("filter_rejected", "orphan_correlations", "invalid_timestamps")


class Client(OtherClient):
    clocks: ClassVar[list[object]] = []  # CUPTI may ask to the end of the process

    def __init__(self, kineto: bool) -> None:
        super().__init__()
        self.kineto = kineto
        self.on = False

    def start(self) -> None:
        if self.kineto:
            clock = _CLOCK(lambda: time.monotonic_ns() * 3)  # cycles, as of a TSC
            self.clocks.append(clock)
            assert self._lib.cuptiActivityRegisterTimestampCallback(clock) == 0
        self.register()
        self.enable()
        self.on = True

    def stop(self) -> None:
        self.flush(0 if self.kineto else FORCED)
        self.disable()
        self.on = False


def one_order(seed: int, sim: SimDevice) -> None:
    r = random.Random(seed)
    device = open_device("sim")
    client = Client(kineto=bool(seed % 2))
    prof: cuptiprof.profile | None = None
    launched = 0
    settings = cupti_settings()
    for i in range(r.randint(6, 14)):
        what = r.choice(("launch", "launch", "ours", "ours", "theirs", "flush"))
        if what == "launch":
            sim.launch(f"k{i}", count=(n := r.choice((1, 20, 300))))
            launched += n
        elif what == "ours" and prof is None:
            settings = cupti_settings()
            prof, launched = cuptiprof.profile(device=device, activities=["kernel"]).start(), 0
        elif what == "ours" and prof is not None:
            check(prof.stop(), launched)
            prof = None
            assert cupti_settings() == settings
        elif what == "theirs":
            client.stop() if client.on else client.start()
        elif what == "flush" and client.on and not client.kineto:
            client.flush()
    if prof is not None:
        check(prof.stop(), launched)
        assert cupti_settings() == settings
    if client.on:
        client.stop()
    client.register()
    client.flush(FORCED)


def check(result: cuptiprof.Result, launched: int) -> None:
    lost = sum(n for name, n in result.losses.items() if name not in NOT_LOST)
    assert len(result.kernels) <= launched <= len(result.kernels) + lost, (launched, len(result.kernels), lost)
    assert result.metadata["launches"]["launches"] == launched


@pytest.mark.parametrize("first", [0, 20, *(pytest.param(n, marks=pytest.mark.nightly) for n in range(40, 200, 20))])
def test_random_orders(first: int) -> None:
    sim = SimDevice()
    for seed in range(first, first + 20):
        sim.reset()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                one_order(seed, sim)
            except BaseException as error:
                error.add_note(f"order {seed}")
                raise
    sim.reset()
