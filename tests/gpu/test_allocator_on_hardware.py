"""The history of PyTorch's caching allocator on a real GPU (marker ``gpu``): its times lie on the run clock, its sums are torch's."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cuptiprof
from cuptiprof.analysis.allocators import allocator_memory as memory
from cuptiprof.device.locate import driver_present

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not driver_present(), reason="no NVIDIA driver on this machine"),
]
ACTIVITIES = ["kernel", "runtime", "allocator"]


@pytest.fixture
def torch() -> Any:
    module = pytest.importorskip("torch")
    if not module.cuda.is_available():
        pytest.skip("this torch has no CUDA")
    module.ones(8, device="cuda").sum().item()
    module.cuda.empty_cache()
    return module


def test_levels_and_regions(torch: Any) -> None:
    base = torch.cuda.memory_stats()["requested_bytes.all.current"]
    with cuptiprof.profile(activities=ACTIVITIES) as prof:
        with cuptiprof.region("kept"):
            kept = [torch.empty(1 << 20, device="cuda") for _ in range(5)]
        with cuptiprof.region("dropped"):
            for _ in range(100):
                torch.empty(3 << 18, device="cuda")
        stats = torch.cuda.memory_stats()
    result = prof.result()
    timeline = memory.memory_timeline(result, 0)
    assert timeline.before[0] == base
    assert int(timeline.allocated[-1]) == stats["requested_bytes.all.current"]
    assert int(timeline.reserved[-1]) == stats["reserved_bytes.all.current"]
    use = memory.memory_by_region(result, 0)
    if hasattr(torch.cuda.memory, "_set_memory_metadata"):
        allocated = dict(zip(use.names, use.self_allocated.tolist(), strict=True))
        assert allocated["kept"] == 5 << 22 and allocated["dropped"] == 100 * (3 << 20)
    del kept


def test_times_lie_on_the_run_clock(torch: Any) -> None:
    with cuptiprof.profile(activities=ACTIVITIES) as prof:
        for _ in range(200):
            with cuptiprof.region("one"):
                torch.empty(1 << 20, device="cuda")
    result = prof.result()
    events, regions = result.allocator_events, result.regions
    time = events["timestamp"][events["action"] == memory.ALLOC]
    assert len(time) == len(regions) == 200
    # To the microsecond that torch gives, and what readings of two clocks differ by.
    assert ((regions["start"] - 2_000 < time) & (time < regions["end"] + 2_000)).all()


def test_backward_s_threads_by_operator(torch: Any) -> None:
    net = torch.nn.Sequential(*[torch.nn.Linear(512, 512) for _ in range(4)]).cuda()
    x = torch.randn(64, 512, device="cuda")
    with cuptiprof.profile(activities=ACTIVITIES, sources=["operators"]) as prof:
        for _ in range(5):
            net(x).sum().backward()
    result = prof.result()
    events = result.allocator_events
    known = events["operator_known"] != 0
    assert known.mean() > 0.9
    assert (
        events["backward"].any()
        and not np.isin(events["operator"][known & (events["action"] == memory.ALLOC)], [""]).any()
    )


def test_torch_s_own_snapshot_and_ours_agree(torch: Any, tmp_path: Path) -> None:
    with cuptiprof.profile(activities=ACTIVITIES) as prof:
        kept = [torch.empty(n << 16, device="cuda") for n in range(1, 30)]
        torch.cuda.memory._dump_snapshot(str(tmp_path / "torch.pickle"))
    prof.result().export(tmp_path / "ours.pickle")
    ours, theirs = (pickle.loads((tmp_path / f"{name}.pickle").read_bytes()) for name in ("ours", "torch"))
    for a, b in zip(ours["segments"], theirs["segments"], strict=True):
        assert [(x["address"], x["size"], x["state"]) for x in a["blocks"]] == [
            (x["address"], x["size"], x["state"]) for x in b["blocks"]
        ]
    assert len(cuptiprof.open(tmp_path / "torch.pickle").allocator_events)
    del kept
