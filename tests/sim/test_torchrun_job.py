"""A job of four real processes under torchrun, gloo between them, on simulated GPUs: one is slow, one is killed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import cuptiprof
from cuptiprof.job.clocks import align_clocks
from cuptiprof.job.engines import open_tables
from cuptiprof.job.rank_calls import read_calls
from cuptiprof.job.stragglers import rank_scores

PROGRAM = """
import os, signal, time
import torch
import torch.distributed as dist
from cuptiprof.sim.sim_device import SimDevice

dist.init_process_group("gloo")
rank, device = dist.get_rank(), SimDevice()
for step in range(40):
    device.launch("gemm", grid=(64, 1, 1), count=3)
    time.sleep(0.06 if rank == 2 else 0.02)
    if rank == 3 and step == 30:
        os.kill(os.getpid(), signal.SIGKILL)
    dist.all_reduce(torch.ones(1000))
"""


def test_the_slow_one_is_told_and_the_killed_one_named(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(PROGRAM)
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "4", "--standalone", "-m", "cuptiprof", "run",
               "--device", "sim", "-q", "--activities", "kernel,runtime,collectives", "-o", "job", "train.py"]  # fmt: skip
    environment = {**os.environ, "GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=250)
    assert done.returncode != 0
    job = cuptiprof.open_job(tmp_path / "job")
    assert job.ranks == [0, 1, 2] and job.missing == [3] and job.notes() == ["rank 3 of 4 is missing"], done.stderr[
        -3000:
    ]
    place = job.runs[1].metadata["distributed"]
    assert (place["launcher"], place["local_rank"], place["world_size"]) == ("torchrun", 1, 4)
    torchrun = job.runs[1].metadata["parents"][0]["pid"]
    assert all(run.metadata["parents"][0]["pid"] == torchrun for run in job.runs.values())
    launched = [list(r.kernels["name"]).count("gemm") for r in job]
    assert launched == [93, 93, 93]  # up to the step in which the other one was killed
    tables = open_tables(job)
    calls = read_calls(tables)
    hosts = {rank: run.host for rank, run in job.runs.items()}
    scores = rank_scores(tables, calls, hosts, align_clocks(calls, job.ranks))
    assert (scores[0].rank, scores[0].cause) == (2, "slow host")
    assert [score.cause for score in scores[1:]] == ["", ""]
    shown = subprocess.run(
        [sys.executable, "-m", "cuptiprof", "job", "job", "--format", "text"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    ).stdout
    assert "rank 3 of 4 is missing" in shown and "slow host" in shown and "SIMULATED" in shown
