"""What stands above every report: where the data come from."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import trace_path
from report_results import make_result

import cuptiprof


@pytest.mark.parametrize(
    "metadata,expected",
    [
        ({"device": "replay:train-v100.json.gz", "simulated_chip": "V100"}, "(chip V100), a replay of train-v100.json.gz: not measured"),
        ({"device": "sim", "simulated_chip": "H100"}, "(chip H100), PyTorch operators by model: not measured"),
        ({"device": "import:t.sqlite"}, "(chip unknown), imported from t.sqlite: not measured"),
    ],
)  # fmt: skip
def test_simulated_runs_say_of_what_kind(metadata: dict[str, str], expected: str) -> None:
    first = make_result({"kernels": [{"name": "a"}]}, {**metadata, "simulated": True}).report("kernels").header[0]
    assert first.startswith("SIMULATED device") and expected in first


def test_a_database_of_a_simulated_run(tmp_path: Path) -> None:
    with cuptiprof.profile(device=f"replay:{trace_path('train-v100')}") as prof:
        pass
    prof.export(tmp_path / "t.sqlite")
    header = cuptiprof.open(tmp_path / "t.sqlite").report("kernels").header
    assert (
        header[0].startswith("SIMULATED")
        and "imported from t.sqlite" in header[0]
        and not any("model" in line for line in header)
    )
