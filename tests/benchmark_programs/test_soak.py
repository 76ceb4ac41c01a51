"""The soak on the stand-in: every launch accounted for, and one that vanishes is found."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import soak
from cuptiprof.sim.sim_device import Fault, SimDevice

ROOT = Path(__file__).resolve().parents[2]


def test_a_short_soak_is_complete(sim: SimDevice, tmp_path: Path) -> None:
    out = tmp_path / "soak.json"
    command = [sys.executable, "-m", "benchmarks.soak", "--device", "sim", "--launches", "100500", "--out", str(out)]
    assert subprocess.run(command, cwd=ROOT, capture_output=True, timeout=60).returncode == 0
    data = json.loads(out.read_text())
    assert data["simulated"] and data["complete"] and data["unexplained"] == 0 and data["losses"] == {}
    assert data["launches_made"] == data["launches_seen"] == data["records_received"] == data["rows_kept"] == 100500
    assert len(data["resident_growth_bytes"]) == soak.REPORTS


def test_evicted_rows_are_explained(sim: SimDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(soak, "BUDGET", 64_000_000)  # an eighth of it holds what is on its way
    found = soak.run("sim", 1_500_000, 60)
    assert found["losses"]["budget_evicted"] == 1_500_000 - found["rows_kept"] > 0
    assert set(found["losses"]) == {"budget_evicted"} and found["unexplained"] == 0


def test_a_record_that_never_comes_is_found(sim: SimDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    ordinary = soak.launcher

    def dropping(device: str) -> object:
        launch, synchronize = ordinary(device)

        def with_fault(count: int) -> None:
            if sim.truth()["kernels"] == 3000:  # inside the session
                sim.inject(Fault.DROP_RECORDS, "", 7)
            launch(count)

        return with_fault, synchronize

    monkeypatch.setattr(soak, "launcher", dropping)
    found = soak.run("sim", 6000, 10)
    assert found["unexplained"] > 0 and found["losses"]


def test_time_that_runs_out_is_said(sim: SimDevice) -> None:
    found = soak.run("sim", 10**9, 0.2)
    assert not found["complete"] and 0 < found["launches_made"] < 10**9 and found["unexplained"] == 0


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [
        ((10, 10, 10, 10, {}), 0),
        ((10, 10, 10, 4, {"budget_evicted": 6}), 0),
        ((10, 9, 9, 9, {}), 1),
        ((10, 10, 9, 9, {"unreconciled_launches": 1}), 2),
        ((10, 10, 10, 9, {}), 1),
        ((10, 10, 10, 10, {"pool_exhausted": 3}), 3),
    ],
)
def test_what_is_unaccounted_for(numbers: tuple[int, int, int, int, dict[str, int]], expected: int) -> None:
    assert soak.unaccounted(*numbers) == expected
