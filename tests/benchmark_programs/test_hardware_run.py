"""benchmarks.hardware around its parts: who measured, how large, how long."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from benchmarks import hardware
from benchmarks.hardware_report.findings import machine_of
from benchmarks.identity import FIELDS, identity
from cuptiprof.device.locate import driver_present
from cuptiprof.errors import DeviceError


def test_the_stand_in_says_what_it_is(tmp_path: Path) -> None:
    where = hardware.where_measured("sim", tmp_path / "log", time.monotonic() + 60)
    assert (
        where
        == identity("sim")
        == {"chip": "H100", "gpu": "simulated H100", "driver": "simulated", "cupti_version": 130001}
    )


@pytest.mark.skipif(driver_present(), reason="this machine has an NVIDIA driver")
def test_without_a_driver_there_is_nobody_to_name(tmp_path: Path) -> None:
    with pytest.raises(DeviceError):
        identity("cuda")
    where = hardware.where_measured("cuda", tmp_path / "log", time.monotonic() + 60)
    assert where == dict.fromkeys(FIELDS) and "no NVIDIA driver" in (tmp_path / "log").read_text()
    assert machine_of({"simulated": False, "device": "cuda", "machine": where}) is None


def test_a_file_says_where_it_was_measured(tmp_path: Path) -> None:
    file = tmp_path / "overhead.json"
    where = {"chip": "GH100", "gpu": "H100", "driver": "580.65", "cupti_version": 130001}
    path = f"{hardware.ROOT}/examples/train.py"
    file.write_text(
        json.dumps({"simulated": False, "device": "cuda", "path": path, "machine": {"cpu": "x", "gpu": "none"}})
    )
    hardware.stamp(file, where)
    data = json.loads(file.read_text())
    assert data["path"] == "./examples/train.py"  # and not whose folder it was
    assert data["machine"] == {"cpu": "x", **where}
    assert str(machine_of(data)) == "GH100, driver 580.65, CUPTI 130001"
    file.write_text("{ cut")
    hardware.stamp(file, where)
    assert file.read_text() == "{ cut"


def test_no_more_and_no_larger_files_than_allowed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hardware, "FILE_BYTES", 1000)
    for i in range(10):
        (tmp_path / f"{i}.json").write_bytes(b"x" * (10 + i))
    (tmp_path / "log.txt").write_bytes(b"x" * 1001)
    said = hardware.keep_small(tmp_path)
    assert [s.split(" ")[0] for s in said] == ["log.txt", "9.json", "8.json"]
    assert len(list(tmp_path.iterdir())) == hardware.FILES


@pytest.mark.parametrize("device", ["cuda", "sim"])
def test_the_parts_are_all_of_it_and_write_no_more_files_than_allowed(tmp_path: Path, device: str) -> None:
    parts = {p.name: p for p in hardware.parts_of(device, tmp_path, tmp_path)}
    assert {
        "doctor",
        "verify",
        "probes",
        "overhead",
        "agreement",
        "soak",
        "fixtures",
        "tests",
        "cupti_versions",
    } <= set(parts)
    assert ("tests/gpu" in parts["tests"].arguments) == (device == "cuda")
    written = [p.json_file for p in parts.values() if p.json_file]
    assert len(written) + len(["report", "log", "counter_image", "fixtures", "example"]) <= hardware.FILES
    assert hardware.TOTAL_S < 480 and all(p.seconds < hardware.TOTAL_S for p in parts.values())
    assert "cupti_versions" not in {p.name for p in hardware.parts_of(device, tmp_path, None)}
