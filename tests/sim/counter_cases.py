"""What the tests of counters under faults share."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import pytest

import cuptiprof
from cuptiprof import _core
from cuptiprof.device.devices import SimulatedDevice
from cuptiprof.sim.sim_device import Op, Setup, SimDevice, library_path

ONE_PASS = ["ipc", "inst_executed"]
ROTATED = [*ONE_PASS, "gld_efficiency", "l1tex__t_sector_hit_rate.pct"]  # two groups of one pass
SEVERAL = ["gld_efficiency", "inst_executed", "lts__t_sector_hit_rate.pct"]
STRATEGIES = ["replay", "iterate", "range", "sample"]
CONTEXT_DESTROY = 23


@pytest.fixture
def machine() -> Iterator[SimDevice]:
    """A machine of its own, on the real clock."""
    device = SimDevice()
    device.clear_faults()
    with cuptiprof.profile(device="sim"):
        pass
    device.reset()
    yield device
    device.clear_faults()
    device.reset()


class OfRelease(SimulatedDevice):
    """The simulated device with the libcupti of a release, made anew."""

    def __init__(self, version: int, **fields: Any) -> None:
        SimDevice().reset(cupti_version=version, **fields)
        super().__init__()
        self.setup = Setup(cupti_version=version, **fields)
        self.sim.reset(self.setup)
        self.library = _core.load_cupti(str(library_path()), "test", True)


def counted(result: cuptiprof.Result) -> dict[str, int]:
    return dict(result.metadata["counters"]["events"])


def inst(device: SimDevice, name: str, **fields: Any) -> float:
    """True instructions of one launch of `name`."""
    shape = {"grid": (1, 1, 1), "block": (128, 1, 1)} | fields
    return float(device.true_metric("smsp__inst_executed.sum", device.ops(1, Op.KERNEL, name=name, **shape))[0])


class quiet_warnings(warnings.catch_warnings):
    """Warnings are looked at elsewhere."""

    def __enter__(self) -> Any:
        out = super().__enter__()
        warnings.simplefilter("ignore")
        return out
