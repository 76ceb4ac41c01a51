"""One binary with several releases of libcupti: the part that needs neither a GPU nor the network."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from benchmarks import cupti_versions

ROOT = Path(__file__).resolve().parents[2]
pytest_plugins = ["nvidia_libraries"]


def test_the_installed_release_walks_records_of_its_own_layout(cupti_13_0: str, no_driver: None) -> None:
    found = cupti_versions.examine(Path(cupti_13_0), "none")
    assert found["release"] == "13.0" and not found["needs_driver"]
    assert found["records"]["records_right"] is True and found["records"]["records"] == 400
    assert "no NVIDIA driver" in found["doctor"]["first_finding"]
    assert cupti_versions.right(found, "none") and str(Path(cupti_13_0).parent) not in json.dumps(found)


def test_records_of_another_layout_are_not_right(cupti_13_0: str, no_driver: None) -> None:
    command = [sys.executable, "-c", f"""
import sys; sys.path.append({str(ROOT)!r})
from benchmarks import cupti_versions
from cuptiprof.errors import CuptiError
try: print(cupti_versions.walk_records({cupti_13_0!r}, "12.6"))
except CuptiError as e: print(e.code)
"""]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "21", done.stderr  # CUPTI_ERROR_INVALID_KIND


def test_layouts_by_release() -> None:
    kernel, memcpy = cupti_versions.KERNEL, cupti_versions.MEMCPY
    sizes = {r: cupti_versions.layout(r)[kernel] for r in ("12.6", "12.9", "13.0", "13.2", "13.4 or newer", "13.10")}
    assert sizes == {"12.6": 208, "12.9": 208, "13.0": 216, "13.2": 224, "13.4 or newer": 248, "13.10": 248}
    assert cupti_versions.layout("12.6")[memcpy] == 88 and cupti_versions.layout("12.9")[memcpy] == 96
    for unknown in ("12.5", "", "newest"):
        with pytest.raises(ValueError):
            cupti_versions.layout(unknown)


def test_only_the_libraries_leave_a_wheel_and_none_leaves_the_folder(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "nvidia_cuda_cupti-13.0.85-py3-none-any.whl", "w") as wheel:
        wheel.writestr("nvidia/cu13/lib/libcupti.so.13", "x")
        wheel.writestr("nvidia/cu13/lib/libcheckpoint.so", "x")
        wheel.writestr("../../escaped/lib/libcupti.so.13", "x")
        wheel.writestr("nvidia_cuda_cupti-13.0.85.dist-info/RECORD", "nvidia/cu13/lib/libcupti.so.13,,\n")
    scratch = tmp_path / "scratch"
    found = [p.relative_to(scratch) for p in cupti_versions.unpack(tmp_path, scratch)]
    assert Path("0/nvidia/cu13/lib/libcupti.so.13") in found and all(".." not in p.parts for p in found)
    assert not (tmp_path / "escaped").exists() and not (tmp_path.parent / "escaped").exists()
    assert not list(scratch.rglob("libcheckpoint.so"))


def test_a_release_is_right_only_when_it_says_so() -> None:
    fine = {"needs_driver": False, "records": {"records_right": True}, "doctor": {"status": 1}}
    assert cupti_versions.right(fine, "none")
    assert not cupti_versions.right({**fine, "records": {"records_right": False}}, "none")
    crashed = {"needs_driver": True, "records": {"error": "", "status": -11}, "doctor": {"status": 1}}
    assert not cupti_versions.right(crashed, "none")
    assert not cupti_versions.right({**fine, "verify": {"status": 1}}, "cuda")
    assert cupti_versions.right({**fine, "verify": {"status": 0}}, "cuda")
