"""The benchmark of fleet analyses: partitions are runs of their own, and every analysis is asked of all of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import cuptiprof
from benchmarks import job


def test_partitions_are_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job, "STEPS", 3)
    monkeypatch.setattr(job, "KERNELS", 10)
    size = job.partitions(tmp_path / "job", 11)
    opened = cuptiprof.open_job(tmp_path / "job")
    assert opened.ranks == list(range(11)) and opened.world_size == 11 and size > 1000
    assert opened.runs[10].host == "node001"
    assert list(opened.rank(9).kernels["start"]) == list(opened.rank(1).kernels["start"])
    calls = opened.rank(9).tables["collectives"]
    assert set(calls["group"]) == {"host-8", "across-1"} and set(calls["ranks"]) == {"[8, 9, 10]", "[1, 9]"}


@pytest.mark.parametrize("analysis", job.ANALYSES)
def test_an_answer_is_a_line(
    tmp_path: Path, analysis: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(job, "STEPS", 6)
    monkeypatch.setattr(job, "KERNELS", 10)
    job.partitions(tmp_path / "job", 9)
    job.ask(str(tmp_path / "job"), analysis, "1GB")
    found = json.loads(capsys.readouterr().out)
    assert found["rows"] == {"kernels": 5, "imbalance": 6, "collectives": 3}.get(analysis, 9)
    assert found["s"] > 0 and found["peak_mb"] > 0
