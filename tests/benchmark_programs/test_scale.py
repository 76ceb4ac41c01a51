"""The benchmark of saved runs: every step of it works, and says what it took."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import scale

ROOT = Path(__file__).resolve().parents[2]


def test_every_step_says_what_it_took(tmp_path: Path) -> None:
    out = tmp_path / "scale.json"
    steps = [*scale.STEPS, scale.SPILLED, "floor: pyarrow"]  # duckdb is no dependency
    command = [
        sys.executable,
        "-m",
        "benchmarks.scale",
        "--kernels",
        "3000",
        "--steps",
        *steps,
        "--kind",
        "many",
        "--out",
        str(out),
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=250)
    assert done.returncode == 0, done.stderr
    found = json.loads(out.read_text())["kernels"]["3000"]["many"]
    assert list(found) == ["make", *steps] and len(done.stderr.splitlines()) == 1 + len(steps)
    for step, row in found.items():
        assert "failed" not in row, (step, row)
        assert row["seconds"]["save" if step == scale.SPILLED else step] > 0 and row["peak_mb"] > 0, step
    assert set(scale.MADE) == set(found["make"]["seconds"])


@pytest.mark.parametrize("kind", scale.SHAPES)
def test_the_run_is_one_that_a_session_could_leave(kind: str) -> None:
    run = scale.build(5000, scale.SHAPES[kind](5000))
    kernels, regions = run.kernels, run.regions
    assert len(kernels) == 5000 and len(set(kernels["config"].tolist())) == len(run.launch_configs)
    assert (kernels["end"] > kernels["start"]).all() and (regions["end"] > regions["start"]).all()
    of = dict(zip(regions["instance"].tolist(), range(len(regions)), strict=True))
    row = [of[i] for i in kernels["region_instance"].tolist()]
    assert (regions["path"][row] == kernels["region"]).all()
    assert {run.regions_report().rows[0]["region"]} == {"step"}
