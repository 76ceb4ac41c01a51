"""Sessions with counters on a real GPU (marker ``gpu``), with PyTorch's kernels, threads and graphs."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hardware_counters import CHEAP, DEVICE, SEVERAL, collect

import cuptiprof
from cuptiprof.device.locate import driver_present
from cuptiprof.errors import CuptiError
from cuptiprof.filter.kernel_filter import KernelFilter

pytest_plugins = ["hardware_fixtures"]
pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not driver_present(), reason="no NVIDIA driver on this machine"),
]
OPTION = "NVreg_RestrictProfilingToAdminUsers"


def test_counters_are_had_or_the_driver_option_is_named(torch: Any, denied: str) -> None:
    if not denied:
        return  # the fixture saw a counted launch
    assert OPTION in denied
    with pytest.raises(CuptiError) as caught:
        cuptiprof.profile(metrics=CHEAP, strategy="sample").start()
    assert caught.value.code == 35 and OPTION in caught.value.hint
    with cuptiprof.profile() as prof:
        torch.ones(64, device=DEVICE).mul_(1.5)
    assert len(prof.result().kernels) >= 1


def test_only_selected_launches_are_counted(torch: Any, x: Any) -> None:
    def work() -> None:
        for _ in range(5):
            x.mul_(1.5)
            with cuptiprof.region("fwd"), cuptiprof.region("attn"):
                x.mul_(1.5)
                x.sin_()

    names = set(map(str, collect(work).kernels["name"]))
    [sine] = [n for n in names if "sin_kernel" in n]
    chosen = KernelFilter("regex:sin_kernel", base="demangled", regions="fwd/*", count=3)
    result = collect(work, metrics=SEVERAL, strategy="replay", kernels=chosen)
    assert list(result.metric_ranges["name"]) == [sine] * 3
    assert set(result.metric_ranges["region"]) == {"fwd/attn"}
    assert list(result.kernels["correlation_id"]) == list(result.metric_ranges["correlation_id"])
    assert result.metadata["counters"]["names_judged"] == len(names)


def train(torch: Any) -> list[Any]:
    """A little training with accumulation in place, and its state: wrong if a replayed kernel leaves its writes behind."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.GELU(), torch.nn.Linear(512, 64)).to(DEVICE)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    data = torch.randn(128, 256, device=DEVICE)
    counts = torch.zeros(64, dtype=torch.int64, device=DEVICE)
    for _ in range(3):
        loss = model(data).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        best = model(data).argmax(1)
        counts.scatter_add_(0, best, torch.ones_like(best))
    return [*(p.detach().clone() for p in model.parameters()), counts]


@pytest.mark.parametrize("strategy", ["replay", "iterate", "sample"])
def test_the_program_has_the_same_results(torch: Any, x: Any, strategy: str) -> None:
    names = ["ipc", "achieved_occupancy"] if strategy == "sample" else [*CHEAP, "gld_efficiency", "stall_sync"]
    expected, again = train(torch), train(torch)
    assert all(
        torch.equal(a, b) for a, b in zip(expected, again, strict=True)
    )  # else nothing below would mean anything
    got: list[Any] = []
    result = collect(lambda: got.extend(train(torch)), metrics=names, strategy=strategy, sampling_interval="20us")
    assert len(result.metric_ranges) > 0
    assert all(torch.equal(a, b) for a, b in zip(expected, got, strict=True))


def test_captured_launches_are_not_counted(torch: Any, x: Any) -> None:
    y = torch.zeros(1024, device=DEVICE)
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        y.add_(1)
    torch.cuda.current_stream().wait_stream(side)
    y.zero_()
    with cuptiprof.profile(metrics=CHEAP, kernels=KernelFilter("regex:[aA]dd", base="demangled")) as prof:
        y.add_(1)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for _ in range(5):
                y.add_(1)
        graph.replay()
        torch.cuda.synchronize()
        y.add_(1)
    result = prof.result()
    assert len(result.metric_ranges) == 2
    assert result.metadata["counters"]["events"] == {"captured": 5} and result.losses["uncounted"] == 5
    assert float(y[0]) == 7.0


def test_backward_inherits_the_region(torch: Any, x: Any) -> None:
    layer = torch.nn.Linear(64, 64).to(DEVICE)
    data = torch.randn(32, 64, device=DEVICE)

    def work() -> None:
        with cuptiprof.region("fwd"):
            loss = layer(data).sum()
        with cuptiprof.region("bwd"):
            loss.backward()

    result = collect(work, metrics=CHEAP, regions="bwd")
    assert set(result.metric_ranges["region"]) == {"bwd"}
    assert list(result.kernels["region"]) == ["bwd"] * len(result.metric_ranges)


def test_threads_take_turns(torch: Any, x: Any) -> None:
    one = collect(lambda: x.mul_(1.5), metrics=["inst_executed"]).counters["inst_executed"][0]

    def work() -> None:
        mine = torch.ones_like(x)
        with cuptiprof.region("worker"), torch.cuda.stream(torch.cuda.Stream()):
            for _ in range(50):
                mine.mul_(1.5)

    chosen = KernelFilter("regex:MulFunctor", base="demangled", regions="worker")
    with cuptiprof.profile(metrics=["inst_executed", *CHEAP], kernels=chosen) as prof:
        threads = [threading.Thread(target=work) for _ in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    result = prof.result()
    events = result.metadata["counters"]["events"]
    assert len(result.metric_ranges) + events.get("busy", 0) == 200 and len(result.metric_ranges) > 100
    assert set(result.counters["inst_executed"].tolist()) == {one}


def test_counters_of_a_schedule_come_cycle_by_cycle(x: Any) -> None:
    results: list[cuptiprof.Result] = []
    plan = cuptiprof.schedule(wait=1, warmup=1, active=2, repeat=2)
    with cuptiprof.profile(
        metrics=CHEAP, schedule=plan, strategy="replay", on_ready=lambda p: results.append(p.result())
    ) as prof:
        for _ in range(8):
            for _ in range(5):
                x.mul_(1.5)
            prof.step()
    assert [len(r.metric_ranges) for r in results] == [10, 10]


def test_repeated_sessions_with_and_without_counters(x: Any) -> None:
    def work() -> None:
        for _ in range(20):
            x.mul_(1.5)

    seen = set()
    for _ in range(3):
        seen |= set(collect(work, metrics=SEVERAL, strategy="replay").counters["inst_executed"].tolist())
        seen |= set(collect(work, metrics=["inst_executed"], strategy="replay").counters["inst_executed"].tolist())
        assert len(collect(work, metrics=["ipc"], strategy="sample", sampling_interval="20us").kernels) == 20
        assert len(collect(work).kernels) == 20
    assert len(seen) == 1


def test_results_survive_saving(x: Any, tmp_path: Path) -> None:
    result = collect(lambda: x.mul_(1.5), metrics=SEVERAL)
    result.save(tmp_path / "run")
    again = cuptiprof.open(tmp_path / "run")
    np.testing.assert_array_equal(again.counters["ipc"], result.counters["ipc"])
    assert str(again.metrics_table()) == str(result.metrics_table())
    assert "SIMULATED" not in str(again.metrics_table())
