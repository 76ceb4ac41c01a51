"""A job whose ranks save at an address (``memory://``): the same answers as from a folder. tests/remote does it with S3."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from report_results import training_step

import cuptiprof
from benchmarks.generated_job import GeneratedJob
from cuptiprof.cli import main
from cuptiprof.cli.destination import destination
from cuptiprof.errors import CuptiprofError, ResultError
from cuptiprof.job.engines import open_tables

JOB = "memory://bucket/job"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("jobs") / "job"
    GeneratedJob(ranks=4, per_host=2, steps=6).save(folder)
    return folder


def save(rank: int, address: str = JOB, **more: Any) -> Any:
    result = training_step()
    result.metadata |= {"rank": rank, "distributed": {"rank": rank, "world_size": 4, **more}}
    return result.save_rank(address, overwrite=bool(more.get("again")))


def test_the_same_answers(folder: Path, memory: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for result in cuptiprof.open_job(folder):
        assert result.save_rank(JOB) == f"{JOB}/rank-{result.metadata['rank']}.cuptiprof"
    (job, there) = (cuptiprof.open_job(place) for place in (folder, JOB))
    assert there.ranks == job.ranks == [0, 1, 2, 3] and there.runs[3].host == job.runs[3].host and not there.notes()
    assert list(there.rank(2).kernels["start"]) == list(job.rank(2).kernels["start"])
    shown = []
    for place in (str(folder), JOB):
        views = [word for view in ("ranks", "gpus", "clocks") for word in ("--view", view)]
        assert main(["job", place, *views, "--csv"]) == 0
        shown.append(capsys.readouterr().out)
    assert shown[0] == shown[1] and shown[0].count("\n") > 12
    assert main(["job", JOB, "--export", str(tmp_path / "t.json"), "--ranks", "0,3"]) == 0
    assert "ranks 0, 3" in capsys.readouterr().err


def test_what_is_missing_damaged_and_there_twice(memory: Any) -> None:
    for rank in (0, 1, 3):
        save(rank)
    save(1, restart=1)
    with pytest.raises(ResultError, match=r"memory://bucket/job has a run of this rank: rank-0\.cuptiprof"):
        save(0)
    save(0, again=True)
    memory.pipe_file("/bucket/job/rank-3.cuptiprof/run.json", b"{")
    memory.pipe_file("/bucket/job/notes/x.txt", b"mine")
    job = cuptiprof.open_job(JOB)
    assert job.ranks == [0, 1] and job.missing == [2, 3] and job.runs[1].restart == 1
    assert list(job.damaged) == ["rank-3.cuptiprof"] and job.left_out == {
        "rank-1.cuptiprof": "an earlier run of rank 1"
    }
    assert str(job.damaged["rank-3.cuptiprof"]).startswith("memory://bucket/job/rank-3.cuptiprof/run.json: damaged")
    memory.pipe_file("/bucket/job/rank-0.cuptiprof/kernels/rank=0/part-0.parquet", b"PAR1")
    memory.rm_file("/bucket/job/rank-1-restart-1.cuptiprof/kernels/rank=1/part-0.parquet")
    job = cuptiprof.open_job(JOB)
    with pytest.raises(ResultError, match="no run is left"):
        open_tables(job)
    assert "kernels: damaged" in job.damaged["rank-0.cuptiprof"]
    assert "kernels: 0 rows" in job.damaged["rank-1-restart-1.cuptiprof"]


def test_what_is_no_job(memory: Any, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ResultError, match=r"no such folder: memory://bucket/job"):
        cuptiprof.open_job(JOB)
    training_step().save("memory://bucket/run")
    with pytest.raises(ResultError, match="memory://bucket/run is the run of one process"):
        cuptiprof.open_job("memory://bucket/run")
    with pytest.raises(ResultError, match="is a saved run, no folder"):
        save(0, "memory://bucket/run")
    with pytest.raises(ResultError, match="none of 1 runs is of a rank"):
        cuptiprof.open_job("memory://bucket")
    with pytest.raises(ResultError, match="no \\? and #"):
        save(0, "memory://bucket/job?versionId=s3cr3t")
    save(0)
    with pytest.raises(CuptiprofError, match="Spark reads no job at memory://bucket/job"):
        open_tables(cuptiprof.open_job(JOB), "spark")
    assert main(["job", JOB, "--view", "stuck"]) == 1
    assert "a folder on this machine" in capsys.readouterr().err


def test_run_names_it(memory: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "2")
    monkeypatch.setenv("WORLD_SIZE", "4")
    place = destination(JOB, overwrite=False)
    assert place.path == f"{JOB}/rank-2.cuptiprof" and not memory.find("/")  # nothing was left of the trial
    save(2)
    with pytest.raises(ResultError, match="has a run of this rank"):
        destination(JOB, overwrite=False)
    assert destination(JOB, overwrite=True).path == place.path


def test_a_package_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "s3fs", None)
    for ask in (lambda: cuptiprof.open_job("s3://k3y:s3cr3t@b/job"), lambda: save(0, "s3://k3y:s3cr3t@b/job")):
        with pytest.raises(ResultError) as refused:
            ask()
        assert refused.value.hint == "pip install s3fs" and "s3cr3t" not in str(refused.value)
