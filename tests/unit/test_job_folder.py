"""The folder of a job: each rank saves its run there by itself; what is missing, damaged or there twice is said."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from report_results import training_step

import cuptiprof
from cuptiprof.errors import ResultError
from cuptiprof.job.launcher import LAUNCHERS, ancestors, place_in_job
from cuptiprof.job.rank_text import ranks_text


def save(folder: Path | str, rank: int, size: int, **more: Any) -> Path:
    result = training_step()
    result.metadata |= {"rank": rank, "distributed": {"rank": rank, "world_size": size, **more}}
    return result.save_rank(folder)


def test_ranks_save_side_by_side(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda rank: save(tmp_path / "job", rank, 8), range(8)))
    job = cuptiprof.open_job(tmp_path / "job")
    assert job.ranks == list(range(8)) and job.world_size == 8 and not job.missing and not job.notes()
    assert [r.metadata["rank"] for r in job] == list(range(8))
    expected = list(training_step().kernels["name"])
    assert all(list(r.kernels["name"]) == expected for r in job)
    assert not [name for name in os.listdir(tmp_path / "job") if name.startswith(".")]


def test_missing_and_damaged_ranks_are_named(tmp_path: Path) -> None:
    for rank in (0, 2, 3, 5):
        save(tmp_path, rank, 7)
    (tmp_path / "rank-2.cuptiprof" / "run.json").write_text("{")
    job = cuptiprof.open_job(tmp_path)
    assert job.ranks == [0, 3, 5] and job.missing == [1, 2, 4, 6]
    assert list(job.damaged) == ["rank-2.cuptiprof"]
    assert job.notes()[0] == "ranks 1, 2, 4, 6 of 7 are missing"
    (tmp_path / "rank-3.cuptiprof" / "strings" / "rank=3" / "part-0.parquet").write_bytes(b"PAR1")
    assert [r.metadata["rank"] for r in job] == [0, 5]
    assert job.missing == [1, 2, 3, 4, 6] and "rank-3.cuptiprof" in job.damaged
    with pytest.raises(ResultError, match="rank 3 has no run"):
        job.rank(3)


def test_a_rank_is_there_once(tmp_path: Path) -> None:
    save(tmp_path, 1, 2)
    with pytest.raises(ResultError, match=r"has a run of this rank: rank-1\.cuptiprof\n  hint: each run of a job"):
        save(tmp_path, 1, 2)
    save(tmp_path, 1, 2, restart=2)
    job = cuptiprof.open_job(tmp_path)
    assert job.runs[1].restart == 2
    assert job.left_out == {"rank-1.cuptiprof": "an earlier run of rank 1"}


def test_what_is_no_job(tmp_path: Path) -> None:
    with pytest.raises(ResultError, match="of no job"):
        training_step().save_rank(tmp_path / "job")
    assert not (tmp_path / "job").exists()
    with pytest.raises(ResultError, match="no such folder"):
        cuptiprof.open_job(tmp_path / "job")
    with pytest.raises(ResultError, match="no saved runs"):
        cuptiprof.open_job(tmp_path)
    training_step().save(tmp_path / "run")
    with pytest.raises(ResultError, match="the run of one process"):
        cuptiprof.open_job(tmp_path / "run")
    with pytest.raises(ResultError, match="is a saved run, no folder"):
        save(tmp_path / "run", 0, 2)
    with pytest.raises(ResultError, match="none of 1 runs is of a rank"):
        cuptiprof.open_job(tmp_path)


def test_hostile_headers(tmp_path: Path) -> None:
    save(tmp_path, 0, 2)
    for i, distributed in enumerate((3, {"rank": -1}, {"rank": 10**30}, {"rank": True}, {"rank": "0"})):
        run = tmp_path / f"bad-{i}"
        run.mkdir()
        header = {"format": 2, "metadata": {"distributed": distributed}, "losses": {}, "rows": {}}
        (run / "run.json").write_text(json.dumps(header))
    run = tmp_path / "rank-1.cuptiprof"
    run.mkdir()
    many = {"rank": 1, "world_size": 10**30}
    (run / "run.json").write_text(
        json.dumps({"format": 2, "metadata": {"distributed": many, "clock_pairs": 3}, "losses": {}, "rows": {}})
    )
    job = cuptiprof.open_job(tmp_path)
    assert job.ranks == [0, 1] and len(job.left_out) == 5 and job.world_size == 1_000_000


LAUNCHED = {
    "torchrun": {"RANK": "3", "WORLD_SIZE": "8", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "2", "TORCHELASTIC_RUN_ID": "j", "TORCHELASTIC_RESTART_COUNT": "0",
                 "SLURM_PROCID": "1", "SLURM_NTASKS": "4", "SLURM_STEP_ID": "0"},
    "Open MPI": {"OMPI_COMM_WORLD_RANK": "3", "OMPI_COMM_WORLD_SIZE": "8", "OMPI_COMM_WORLD_LOCAL_RANK": "1", "OMPI_COMM_WORLD_LOCAL_SIZE": "2"},
    "PMI": {"PMI_RANK": "3", "PMI_SIZE": "8", "MPI_LOCALRANKID": "1", "MPI_LOCALNRANKS": "2"},
    "Slurm": {"SLURM_PROCID": "3", "SLURM_NTASKS": "8", "SLURM_LOCALID": "1", "SLURM_STEP_ID": "0", "SLURM_JOB_ID": "7"},
}  # fmt: skip


@pytest.mark.parametrize("name", [launcher.name for launcher in LAUNCHERS])
def test_what_launchers_say(name: str) -> None:
    place = place_in_job(LAUNCHED[name])
    assert (place["launcher"], place["rank"], place["world_size"], place["local_rank"]) == (name, 3, 8, 1)


def test_what_is_no_rank() -> None:
    assert place_in_job({}) == {}
    assert place_in_job({"SLURM_PROCID": "0", "SLURM_NTASKS": "8"}) == {}  # a batch script
    assert place_in_job({"RANK": "9", "WORLD_SIZE": "8"}) == {}
    assert place_in_job({"RANK": "-1"}) == place_in_job({"RANK": "٣"}) == {}
    assert place_in_job({"RANK": "2", "WORLD_SIZE": "x"}) == {"launcher": "torchrun", "rank": 2}


def test_ancestors_begin_with_the_parent() -> None:
    found = ancestors(os.getpid())
    assert found[0]["pid"] == os.getppid() and found[0]["name"]


def test_ranks_in_a_sentence() -> None:
    assert ranks_text([3]) == "rank 3"
    assert ranks_text([0, 1, 2, 5, 6, 9]) == "ranks 0-2, 5, 6, 9"
    assert ranks_text(range(0, 40, 2)) == "ranks 0, 2, 4, 6, 8, 10, 12, 14 and 12 more"


SCRIPT = "from cuptiprof.sim.sim_device import SimDevice\nSimDevice().launch('kernel', count=3)\n"


def test_run_saves_each_rank_in_one_folder(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(SCRIPT)

    def run(rank: int, *options: str) -> subprocess.CompletedProcess[str]:
        environment = os.environ | {"OMPI_COMM_WORLD_RANK": str(rank), "OMPI_COMM_WORLD_SIZE": "3"}
        command = [sys.executable, "-m", "cuptiprof", "run", "--device", "sim", "-q", "-o", *options, "train.py"]
        return subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=100)

    for rank in (0, 2):
        assert run(rank, "job").returncode == 0
    second = run(2, "job")
    assert second.returncode == 1 and "has a run of this rank" in second.stderr
    assert run(2, "job", "-f").returncode == 0
    assert run(1, "alone-%q{OMPI_COMM_WORLD_RANK}").returncode == 0
    assert len(cuptiprof.open(tmp_path / "alone-1").kernels) == 3
    job = cuptiprof.open_job(tmp_path / "job")
    assert job.ranks == [0, 2] and job.missing == [1]
    assert job.runs[0].metadata["distributed"]["launcher"] == "Open MPI"
    assert job.runs[0].metadata["parents"][0]["pid"] == os.getpid()
    assert job.runs[0].host == job.rank(0).metadata["host"]
