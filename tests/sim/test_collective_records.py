"""Collectives that C++ begins by itself: what the backend records of each, as NCCL's does, and whose kernels follow."""

from __future__ import annotations

import ctypes
import threading
import warnings
from typing import Any

import pytest
import torch
import torch.distributed as dist
from sim.collective_backend import Backend, Group, compiled

import cuptiprof
from cuptiprof import _core
from cuptiprof.data.result import Result
from cuptiprof.session.torch_operators import library_path
from cuptiprof.sim.sim_device import SimDevice

KINDS = ["kernel", "runtime", "driver", "collectives"]
NCCL = "ncclDevKernel_AllReduce_Sum_f32_RING_LL"


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    return compiled(tmp_path_factory.mktemp("backend"))


@pytest.fixture
def backend(library: ctypes.CDLL) -> Backend:
    return Backend(library, lambda: SimDevice().launch(NCCL))


def shown(result: Result, *columns: str) -> list[tuple[Any, ...]]:
    return [tuple(row[c] for c in columns) for row in result.collectives.rows()]


def of_nccl(result: Result) -> list[int]:
    """`kernels.collective` of those that communicate."""
    return [row["collective"] for row in result.kernels.rows() if row["name"] == NCCL]


def test_this_torch_is_read() -> None:
    assert _core.reads_collectives(library_path(torch))


def test_what_a_backend_says(backend: Backend) -> None:
    with cuptiprof.profile(device="sim", activities=KINDS) as prof:
        with cuptiprof.region("gradients"):
            backend.call("allreduce", 1000)
        SimDevice().launch("between")
        backend.call("_allgather_base", 10, 20, type_=15)
        backend.call("send", 7, 0, rank=5, type_=11)
        backend.call("wait", 0)
    result = prof.result()
    assert shown(result, "name", "dtype", "in_bytes", "out_bytes", "peer", "sequence", "region") == [
        ("allreduce", "float32", 4000, 4000, 0, 2, "gradients"),
        ("_allgather_base", "bfloat16", 20, 40, 0, 3, ""),
        ("send", "bool", 7, 0, 6, 4, ""),
    ]
    assert set(shown(result, "group", "group_description", "ranks", "group_size", "is_async")) == {
        ("0", "what it is for", "[4,6]", 2, 1)
    }
    assert of_nccl(result) == [1, 2, 3, 0]  # "wait" is no collective
    assert result.kernels["collective"].tolist() == [1, 0, 2, 3, 0]
    assert (result.collectives["end"] > result.collectives["start"]).all() and not result.losses


def test_data_parallel(backend: Backend) -> None:
    """The reducer calls the group from the engine's thread: each bucket is a row, with its kernel, in the step and the region."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 8))
    parallel = torch.nn.parallel.DistributedDataParallel(model, process_group=Group(backend), bucket_cap_mb=0.001)
    elements = sum(p.numel() for p in model.parameters())
    with cuptiprof.profile(device="sim", activities=KINDS, sources={"operators": "full"}) as prof:
        for _ in range(3):
            with cuptiprof.region("backward"):
                parallel(torch.ones(4, 64)).sum().backward()
            prof.step()
    result = prof.result()
    rows = list(result.collectives.rows())
    assert {(r["name"], r["group"], r["dtype"], r["region"], r["ranks"]) for r in rows} == {
        ("allreduce", "0", "float32", "backward", "[4,6]")
    }
    for step in (1, 2, 3):
        assert sum(r["in_bytes"] for r in rows if r["step"] == step) == 4 * elements
    assert [r["sequence"] - 1 for r in rows] == list(range(1, len(rows) + 1)) and len(rows) > 3
    assert of_nccl(result) == [r["instance"] for r in rows]
    view = result.report("collectives")
    assert sum(row["calls"] for row in view.rows) == len(rows) and all(row["gpu_ns"] for row in view.rows)


def test_a_torch_that_cannot_be_observed(backend: Backend, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is switched on in the program instead, and the result says what is missing."""
    session = _core.Session
    monkeypatch.setattr(_core, "Session", lambda **options: session(**{**options, "operators": 0}))
    monkeypatch.setattr(_core, "knows_torch", lambda: False)
    monkeypatch.setattr(_core, "finds_torch", lambda path: False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with cuptiprof.profile(device="sim", activities=KINDS) as prof:
            backend.call("allreduce", 4)
            assert not torch.autograd.profiler._is_profiler_enabled
    assert not len(prof.result().collectives)
    assert "collectives that C++ begins by itself are not known" in prof.result().metadata["note"]


def test_somebody_s_own_class_is_not_read(backend: Backend) -> None:
    with cuptiprof.profile(device="sim", activities=KINDS) as prof:
        backend.other()
        backend.call("allreduce", 4)
    assert shown(prof.result(), "name", "sequence") == [("allreduce", 2)]


def test_a_followed_call_is_one_row(backend: Backend, monkeypatch: pytest.MonkeyPatch) -> None:
    """What torch.distributed's own function calls records too; that is the same call."""
    monkeypatch.setattr(
        dist.distributed_c10d, "all_reduce", lambda tensor, op=None, group=None: backend.call("allreduce", 4)
    )
    with cuptiprof.profile(device="sim", activities=KINDS) as prof:
        dist.distributed_c10d.all_reduce(torch.ones(4))
        backend.call("allreduce", 8)
    # There is no process group: of the followed call nothing but its record is known.
    assert shown(prof.result(), "name", "in_bytes") == [("allreduce", 16), ("allreduce", 32)]
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    try:
        with cuptiprof.profile(device="sim", activities=KINDS) as prof:
            dist.distributed_c10d.all_reduce(torch.ones(4))
            backend.call("allreduce", 8)
    finally:
        dist.destroy_process_group()
    result = prof.result()
    assert shown(result, "name", "in_bytes", "backend", "ranks") == [
        ("all_reduce", 16, "gloo", "[0]"),
        ("allreduce", 32, "gloo", "[0]"),  # torch's own group of that name
    ]
    assert of_nccl(result) == [1, 2]


def test_cycles_pauses_and_many(backend: Backend) -> None:
    cycles: list[Result] = []
    schedule = cuptiprof.schedule(wait=0, warmup=0, active=1, repeat=2)
    with cuptiprof.profile(
        device="sim", activities=KINDS, schedule=schedule, on_ready=lambda ready: cycles.append(ready.result())
    ) as prof:
        backend.call("allreduce", 1)
        prof.pause()
        backend.call("allreduce", 2)
        prof.resume()
        prof.step()
        backend.call("allreduce", 3)
        prof.step()
        backend.call("allreduce", 4)
    assert [shown(result, "in_bytes") for result in cycles] == [[(4,)], [(12,)]]
    backend.call("allreduce", 5)  # outside of any session
    with cuptiprof.profile(device="sim", activities=["kernel", "collectives"], budget="16 MB") as prof:
        for _ in range(1200):
            backend.call("allreduce", 4)
    result = prof.result()
    assert len(result.collectives) == 1024 and result.losses["budget_evicted"] == 176
    assert result.collectives["sequence"][-1] == backend.sequence + 1  # the last ones stay


def test_several_threads(library: ctypes.CDLL) -> None:
    """Each thread's records are around its own launches."""
    backends = [Backend(library, lambda: SimDevice().launch(NCCL), str(i)) for i in range(4)]

    def work(backend: Backend) -> None:
        for elements in range(1, 101):
            backend.call("allreduce", elements)
            torch.ones(2).neg()

    with cuptiprof.profile(device="sim", activities=KINDS) as prof:
        threads = [threading.Thread(target=work, args=[backend]) for backend in backends]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    result = prof.result()
    by_group: dict[str, list[int]] = {}
    for row in result.collectives.rows():
        by_group.setdefault(row["group"], []).append(row["in_bytes"])
    assert by_group == {str(i): [4 * n for n in range(1, 101)] for i in range(4)}
    assert sorted(of_nccl(result)) == list(range(1, 401)) and not result.losses
