"""Collectives of two real processes over gloo on the loopback: name, group, ranks, type and bytes of each call."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import cuptiprof
from cuptiprof.data.result import Result

PROGRAM = """
import json, os, sys, warnings
import torch
import torch.distributed as dist
import cuptiprof

warnings.simplefilter("ignore")
rank = int(os.environ["RANK"])
dist.init_process_group("gloo")
alone = [dist.new_group([r], group_desc=f"only_{r}") for r in range(2)]
pair = dist.new_group([0, 1], group_desc="pair")
originals = {n: getattr(dist, n) for n in ("all_reduce", "broadcast", "all_gather_into_tensor", "barrier")}
with cuptiprof.profile(device="sim", activities=["kernel", "runtime", "collectives"]) as prof:
    with cuptiprof.region("sum"):
        dist.all_reduce(torch.ones(1000))
    dist.all_gather([torch.zeros(10) for _ in range(2)], torch.ones(10))
    dist.broadcast(torch.ones(5, dtype=torch.float64), 1, group=pair)
    prof.step()
    dist.barrier()
    if rank == 0:
        dist.send(torch.ones(3, dtype=torch.int16), 1)
    else:
        dist.recv(torch.ones(3, dtype=torch.int16), 0)
    dist.all_reduce(torch.ones(4), async_op=True).wait()
    dist.reduce_scatter_tensor(torch.zeros(4), torch.ones(8))
    dist.all_gather_into_tensor(torch.zeros(8), torch.ones(4))
    dist.all_to_all_single(torch.zeros(4), torch.ones(4))
    dist.all_reduce(torch.ones(2), group=alone[rank])
    dist.all_gather_object([None, None], {"rank": rank})
    try:
        dist.all_reduce("no tensor")
    except Exception as e:
        print(type(e).__name__)
assert all(getattr(dist, n) is f and getattr(dist.distributed_c10d, n) is f for n, f in originals.items())
prof.result().save(sys.argv[1])
dist.destroy_process_group()
"""


def run(folder: Path, program: str) -> list[Result]:
    """The program in two processes that find each other; their runs."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    (folder / "program.py").write_text(program)
    environment = {
        **os.environ,
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        "WORLD_SIZE": "2",
        "GLOO_SOCKET_IFNAME": "lo",
    }
    processes = [
        subprocess.Popen(
            [sys.executable, "program.py", f"run{rank}"],
            cwd=folder,
            env={**environment, "RANK": str(rank)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    try:
        for process in processes:
            _, errors = process.communicate(timeout=250)
            assert process.returncode == 0, errors
    finally:
        for process in processes:
            process.kill()
    return [cuptiprof.open(folder / f"run{rank}") for rank in range(2)]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Result]:
    return run(tmp_path_factory.mktemp("gloo"), PROGRAM)


def test_each_call_with_its_type_and_bytes(runs: list[Result]) -> None:
    for rank, result in enumerate(runs):
        rows = list(result.collectives.rows())
        shown = [(r["name"], r["dtype"], r["in_bytes"], r["out_bytes"], r["peer"], r["is_async"]) for r in rows]
        assert shown[:10] == [
            ("all_reduce", "float32", 4000, 4000, 0, 0),
            ("all_gather", "float32", 40, 80, 0, 0),
            ("broadcast", "float64", 40, 40, 2, 0),
            ("barrier", "", 0, 0, 0, 0),
            ("send", "int16", 6, 0, 2, 0) if rank == 0 else ("recv", "int16", 0, 6, 1, 0),
            ("all_reduce", "float32", 16, 16, 0, 1),
            ("reduce_scatter_tensor", "float32", 32, 16, 0, 0),
            ("all_gather_into_tensor", "float32", 16, 32, 0, 0),
            ("all_to_all_single", "float32", 16, 16, 0, 0),
            ("all_reduce", "float32", 8, 8, 0, 0),
        ]
        assert {name for name, *_ in shown[10:]} == {"all_gather"} and len(
            shown
        ) == 12  # of the object: its size, then itself
        assert (result.collectives["end"] >= result.collectives["start"]).all() and not result.losses


def test_groups_regions_and_steps(runs: list[Result]) -> None:
    for rank, result in enumerate(runs):
        rows = list(result.collectives.rows())
        assert [(r["region"], r["step"]) for r in rows[:4]] == [("sum", 1), ("", 1), ("", 1), ("", 2)]
        assert {(r["ranks"], r["group_size"], r["group_description"], r["backend"]) for r in rows} == {
            ("[0,1]", 2, "default_pg", "gloo"), ("[0,1]", 2, "pair", "gloo"), (f"[{rank}]", 1, f"only_{rank}", "gloo"),
        }  # fmt: skip
        assert len({r["group"] for r in rows}) == 3
        in_world = [r["sequence"] for r in rows if r["group_description"] == "default_pg" and r["sequence"]]
        assert in_world == sorted(in_world)
    both = [
        [(r["group"], r["sequence"], r["name"]) for r in result.collectives.rows() if r["name"] != "recv"]
        for result in runs
    ]
    assert [row[0] for row in both[0]][:3] == [row[0] for row in both[1]][:3]  # ranks name a group alike


def test_the_report(runs: list[Result]) -> None:
    view = runs[0].report("collectives")
    text = str(view)
    assert "(default_pg, gloo), ranks [0,1]" in text and "(pair, gloo), ranks [0,1]" in text
    first = next(row for row in view.rows if row["name"] == "all_reduce" and row["in_bytes"] == 4000)
    assert first["calls"] == 1 and first["gpu_ns"] is None and first["bus_bandwidth"] is None and first["host_ns"] > 0


def test_a_session_without_the_activity_leaves_torch_alone() -> None:
    import torch.distributed as dist

    before: Any = dist.all_reduce
    with cuptiprof.profile(device="sim"):
        assert dist.all_reduce is before
    with cuptiprof.profile(device="sim", activities=["kernel", "collectives"]) as prof:
        assert dist.all_reduce is not before
        with pytest.raises(ValueError, match="Default process group"):
            dist.barrier()
    assert dist.all_reduce is before and not len(prof.result().collectives)
    assert "No collectives" in str(prof.result().report("collectives"))
