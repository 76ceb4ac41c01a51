"""``cuptiprof metrics`` as a user types it. Where passes are counted, by NVIDIA's planner, which needs no GPU."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import sys
from typing import Any

import pytest

from cuptiprof.cli import main
from cuptiprof.metrics import name_tables


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """In a process of its own: NVIDIA's library stays out of this one."""
    command = [sys.executable, "-m", "cuptiprof", "metrics", *arguments]
    return subprocess.run(command, capture_output=True, text=True, env={**os.environ, **environment}, timeout=60)


def as_json(*arguments: str) -> dict[str, Any]:
    done = run(*arguments, "--format", "json")
    assert done.returncode == 0, done.stderr
    loaded: dict[str, Any] = json.loads(done.stdout)
    return loaded


def test_the_list_has_everything() -> None:
    rows = as_json()["rows"]
    assert {r["name"] for r in rows} == {*name_tables.metrics(), *name_tables.derived()}
    row = next(r for r in rows if r["name"] == "dram_read_bytes")
    assert (row["unit"], row["status"], row["expression"]) == ("byte", "official-direct", "dram__bytes_read.sum")
    assert "GH100" in row["chips"].split() and "GA10B" not in row["chips"].split()


def test_the_list_of_a_chip_has_what_it_has() -> None:
    report = as_json("--chip", "AD102", "--query-metrics")
    names = {r["name"] for r in report["rows"]}
    assert "ipc" in names and not {"nvlink_receive_throughput", "ecc_throughput"} & names
    row = next(r for r in as_json("--chip", "GB202")["rows"] if r["name"] == "dram_read_bytes")
    assert row["expression"] == "dram__bytes_op_read.sum"


def test_events_and_search() -> None:
    rows = as_json("--query-events")["rows"]
    assert {r["name"] for r in rows} == set(name_tables.events())
    found = as_json("--search", "L2 WRITE")["rows"]
    assert found and all("l2 write" in (r["description"] + r["name"]).lower() for r in found)
    text = run("--search", "nothing has this").stdout
    assert "Nothing has 'nothing has this' in it." in text


def test_passes_alone_and_together() -> None:
    report = as_json("ipc", "l2_tex_hit_rate", "pcie_total_data_received", "--chip", "GH100", "--passes")
    assert {r["name"]: r["passes"] for r in report["rows"]} == {
        "ipc": 1,
        "l2_tex_hit_rate": 2,
        "pcie_total_data_received": 1,
    }
    assert report["passes_together"] == 3
    assert [len(c["metrics"]) for c in report["configurations"]] == [2, 1]
    text = run("memory", "--chip", "GA100", "--passes").stdout
    assert "Together: 4 passes (29 perfworks metrics in 4 passes)" in text


def test_passes_of_sampling() -> None:
    names = ["achieved_occupancy", "dram_utilization", "tex_cache_hit_rate"]
    ranges = as_json(*names, "--chip", "GH100", "--passes")["passes_together"]
    assert ranges == 1 < as_json(*names, "--chip", "GH100", "--passes", "--sampling")["passes_together"]
    sampled = as_json("--section", "PmSampling_WarpStates", "--chip", "GH100", "--sampling")["rows"]
    assert "smsp__warps_issue_stalled_wait.avg" in {r["name"] for r in sampled}
    done = run("gld_efficiency", "--chip", "GH100", "--passes", "--sampling")
    assert done.returncode == 1 and "the planner for GH100 has no smsp__sass" in done.stderr


def test_what_a_section_drops_is_said() -> None:
    report = as_json("--section", "SpeedOfLight", "--set", "basic", "--chip", "GH100")
    assert len(report["rows"]) == 22
    assert "result.kernels" in report["dropped"]["launch__waves_per_multiprocessor"]


def test_perfworks_names_are_described_by_the_library() -> None:
    rows = as_json("dram__bytes.sum", "ipc")["rows"]
    assert "GH100" in rows[0]["chips"].split() and "GA10B" not in rows[0]["chips"].split()
    assert "DRAM" in rows[0]["description"] and rows[0]["unit"] == "byte"
    base = as_json("--base", "--search", "tensor", "--chip", "GH100")["rows"]
    assert {"counter", "ratio"} <= {r["kind"] for r in base}
    assert all("tensor" in (r["name"] + r["description"]).lower() for r in base)


@pytest.mark.parametrize("form", ["text", "markdown", "csv"])
def test_formats(form: str) -> None:
    done = run("ipc", "--format", form)
    assert done.returncode == 0 and "sm__inst_executed.avg.per_cycle_active" in done.stdout.replace("\\", "")
    if form == "csv":
        lines = [line for line in done.stdout.splitlines() if not line.startswith("#")]
        (row,) = csv.DictReader(io.StringIO("\n".join(lines)))
        assert row["kind"] == "ratio" and row["inputs"] == "sm__inst_executed.avg.per_cycle_active"


@pytest.mark.parametrize(
    "arguments,says",
    [
        (["ipc", "--chip", "GH10"], "did you mean GH100"),
        (["ipc", "--chip", "RTX"], "did you mean TU102 or TU104"),
        (["ipc", "--chip", "GV11B"], "GV11B"),
        (["ipc", "--passes"], "--passes needs a chip"),
        (["--base"], "--base needs a chip"),
        (["--section", "Occupancy"], "--section needs a chip"),
        (["ipcc", "--chip", "GH100"], "Did you mean ipc"),
        (["dram__bytes_read.sum", "--chip", "GB202"], "dram__bytes_op_read.sum"),
        (["sm__warps_active", "--chip", "GH100"], "sm__warps_active.avg"),
        (["nvlink_receive_throughput", "--chip", "AD102"], "Chips that have it: GV100"),
        (["warps_lunched", "--query-events", "--chip", "GH100"], "warps_launched"),
        (["--section", "regex:(", "--chip", "GH100"], "unmatched"),
    ],
)
def test_errors(arguments: list[str], says: str) -> None:
    done = run(*arguments)
    assert done.returncode == 1 and says in done.stderr and not done.stdout


def test_without_libcupti_the_catalogue_still_answers() -> None:
    none = {"CUPTIPROF_CUPTI": "/nonexistent/libcupti.so"}
    done = run("occupancy", "--chip", "GH100", "--format", "json", **none)
    assert json.loads(done.stdout)["rows"][0]["name"] == "achieved_occupancy"
    done = run("ipc", "--chip", "GH100", "--passes", **none)
    assert done.returncode == 1 and "/nonexistent/libcupti.so" in done.stderr


def test_presets_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["metrics", "--presets", "--format", "json"]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert {"preset", "set", "section"} == {r["kind"] for r in rows}
    assert {"occupancy", "all", "basic", "SpeedOfLight"} <= {r["name"] for r in rows}
