"""The arithmetic of probes, and how numbers are judged."""

from __future__ import annotations

import math
from typing import Any

import pytest

from cuptiprof import _core
from cuptiprof.errors import CuptiprofError, DeviceError
from cuptiprof.verify import (
    RIGHT,
    SKIPPED,
    WRONG,
    Check,
    Counted,
    Expected,
    Facts,
    KernelLaunch,
    exit_status,
    make_report,
)
from cuptiprof.verify.checking import FAILED, _check, all_probes
from cuptiprof.verify.control_flow import _lanes_in_a_bank
from cuptiprof.verify.memory import _sectors_of_warp
from cuptiprof.verify.simulated import SimMachine


def check(verdict: str) -> Check:
    return Check("p", "s", "m", 1.0, 1.0, 0.0, verdict, "why")


@pytest.mark.parametrize(
    ("verdicts", "status"),
    [
        ([RIGHT], 0),
        ([RIGHT, SKIPPED], 0),
        ([RIGHT, WRONG], 1),
        ([WRONG, FAILED], 1),
        ([RIGHT, FAILED], 2),
        ([SKIPPED], 2),
        ([], 2),
    ],
)
def test_exit_status(verdicts: list[str], status: int) -> None:
    assert exit_status([check(v) for v in verdicts]) == status


@pytest.mark.parametrize(
    ("expected", "measured", "verdict"),
    [
        (Expected("m", 1e9, "w"), 1e9, RIGHT),
        (Expected("m", 1e6, "w"), 1e6 + 1, WRONG),
        (Expected("m", 100.0, "w", 0.02), 102.0, RIGHT),
        (Expected("m", 100.0, "w", 0.02), 102.1, WRONG),
        (Expected("m", 0.0, "w", margin=5), -5.0, RIGHT),
        (Expected("m", 0.0, "w", margin=5), 5.1, WRONG),
        (Expected("m", 0.0, "w"), 1e-12, WRONG),
        (Expected("m", lambda v: v["x"] * 2, "w"), 6.0, RIGHT),
        (Expected("m", lambda v: v["x"] * 2, "w"), 7.0, WRONG),
        (Expected("m", lambda v: v["y"], "w"), 7.0, FAILED),
        (Expected("m", lambda v: v["x"] / 0, "w"), 7.0, FAILED),
        (Expected("m", 1.0, "w"), math.nan, FAILED),
        (Expected("m", 1.0, "w"), math.inf, WRONG),
    ],
)
def test_verdicts(expected: Expected, measured: float, verdict: str) -> None:
    probe = next(iter(all_probes().values()))
    assert _check(probe, expected, {"m": measured, "x": 3.0}, {}, False).verdict == verdict


def test_what_means_nothing_here_is_skipped() -> None:
    probe = next(iter(all_probes().values()))
    hardware = Expected("m", 1.0, "w", hardware_only=True)
    assert _check(probe, hardware, {"m": 1.0}, {}, True).verdict == SKIPPED
    assert _check(probe, hardware, {"m": 2.0}, {}, False).verdict == WRONG
    lacking = _check(probe, Expected("m", 1.0, "w"), {"m": 1.0}, {"m": "no such metric"}, False)
    assert lacking.verdict == SKIPPED and lacking.reason == "no such metric"


@pytest.mark.parametrize(
    ("stride", "offset", "sectors"), [(1, 0, 4), (2, 0, 8), (4, 0, 16), (8, 0, 32), (1, 1, 5), (16, 0, 32)]
)
def test_sectors_of_a_warp(stride: int, offset: int, sectors: int) -> None:
    assert _sectors_of_warp(stride, offset) == sectors


@pytest.mark.parametrize("ways", [1, 2, 4, 32])
def test_bank_conflicts(ways: int) -> None:
    assert _lanes_in_a_bank(ways) == ways


def by_metric(name: str) -> dict[str, Any]:
    plan = all_probes()[name].plan(SimMachine("sim:H100"))
    assert isinstance(plan, Counted)
    return {e.key: e.value for e in plan.expected}


@pytest.mark.parametrize(
    ("name", "percent"),
    [
        ("load-stride-1", 100),
        ("load-stride-2", 50),
        ("load-stride-4", 25),
        ("load-stride-8", 12.5),
        ("load-misaligned", 80),
        ("store-stride-1", 100),
        ("store-stride-2", 50),
        ("store-stride-4", 25),
        ("store-stride-8", 12.5),
        ("store-misaligned", 80),
    ],
)
def test_efficiencies(name: str, percent: float) -> None:
    assert by_metric(name)["gld_efficiency" if name.startswith("load") else "gst_efficiency"] == percent


def test_occupancies_of_an_h100() -> None:
    # By hand: 64 warps, 32 blocks, 65536 registers and 228 KB of shared memory an SM.
    assert by_metric("occupancy-warps")["achieved_occupancy"] == 1.0
    assert by_metric("occupancy-blocks")["achieved_occupancy"] == 32 / 64
    assert by_metric("occupancy-shared")["achieved_occupancy"] == 10 * 2 / 64  # 228 / (20 + 1) KB
    assert by_metric("occupancy-large-shared")["achieved_occupancy"] == 4 * 2 / 64
    assert by_metric("occupancy-registers")["achieved_occupancy"] == 2 * 8 / 64  # 128 registers: 512 threads
    assert by_metric("occupancy-tail")["sm_efficiency"] == 75.0


def test_launch_sizes() -> None:
    launch = KernelLaunch("k", 3, 48)
    assert (launch.threads, launch.warps) == (144, 6)


def test_names_of_differences() -> None:
    assert Expected("m", 1, "w").key == "m"
    assert Expected("m", 1, "w", launch=2).key == "m[2]"
    assert Expected("m", 1, "w", launch=1, minus=0).key == "m[1]-[0]"


def test_the_report_counts_verdicts_and_hides_nothing() -> None:
    facts = Facts("GH100", "a GPU", (9, 0), 132, 1 << 20, 1 << 30, None)
    checks = [check(RIGHT), check(WRONG), Check("p", "s", "", math.nan, math.nan, math.nan, FAILED, "why", "because")]
    report = make_report(facts, checks)
    assert "SIMULATED" not in report.to("text")
    assert "1 right, 1 wrong, 1 failed" in report.to("text")
    assert "because (why)" in report.to("text")
    assert report.rows[2]["expected"] is None


def test_the_simulated_library_runs_no_kernels() -> None:
    from cuptiprof.device.devices import open_device

    library = open_device("sim").library
    with pytest.raises(CuptiprofError) as error:
        _core.ProbeDevice(library, 0)
    expected = "cuModuleLoadData" if _core.probe_images() else "nvcc"
    assert isinstance(error.value, DeviceError) and expected in str(error.value)
    with pytest.raises(DeviceError, match=r"no GPU 7|nvcc"):
        _core.ProbeDevice(library, 7)
