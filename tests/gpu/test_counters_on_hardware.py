"""Counters on a real GPU (marker ``gpu``): the scenarios of tests/sim/test_counters.py, and values that physics decides.

Kernels are PyTorch's element-wise ones, whose work is known: ``mul_`` of n floats multiplies n times, reads and writes 4n bytes.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cuptiprof
from cuptiprof.counters.live import CounterWarning
from cuptiprof.errors import CuptiError, MetricError
from cuptiprof.filters import KernelFilter
from cuptiprof.locate import driver_present

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not driver_present(), reason="no NVIDIA driver on this machine"),
]
DEVICE = "cuda"
CHEAP = ["achieved_occupancy", "ipc", "dram_read_throughput"]  # one pass together
SEVERAL = [*CHEAP, "inst_executed", "gld_efficiency", "l2_tex_hit_rate", "flop_count_sp"]
OPTION = "NVreg_RestrictProfilingToAdminUsers"


@pytest.fixture(scope="module")
def torch() -> Any:
    module = pytest.importorskip("torch")
    if not module.cuda.is_available():
        pytest.skip("this torch has no CUDA")
    module.ones(8, device=DEVICE).sum().item()
    return module


def collect(body: Callable[[], object], **keywords: Any) -> cuptiprof.Result:
    """What a session around `body` gives; warnings of counters are errors."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", CounterWarning)
        with cuptiprof.profile(**keywords) as prof:
            body()
        return prof.result()


@pytest.fixture(scope="module")
def denied(torch: Any) -> str:
    """What a session says when the driver gives counters to administrators only; "" when it gives them to us."""
    x = torch.ones(64, device=DEVICE)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with cuptiprof.profile(metrics=CHEAP) as prof:
            x.mul_(1.5)
    result = prof.result()
    assert len(result.kernels) == 1
    if len(result.metric_ranges):
        return ""
    said = [str(w.message) for w in caught if issubclass(w.category, CounterWarning)]
    assert said and "INSUFFICIENT_PRIVILEGES" in said[0], said
    return said[0]


@pytest.fixture
def x(torch: Any, denied: str) -> Any:
    """4 Mi floats, where counters are to be had."""
    if denied:
        pytest.skip(f"counters are denied here: {denied}")
    return torch.ones(1 << 22, device=DEVICE)


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


def test_values_are_plausible(torch: Any, x: Any) -> None:
    a = torch.randn(2048, 2048, device=DEVICE)

    def work() -> None:
        x.mul_(1.5)
        _ = a @ a
        torch.softmax(a, -1)

    result = collect(work, metrics=SEVERAL, strategy="replay")
    counters = result.counters
    assert len(result.metric_ranges) == len(result.kernels) >= 3 and not result.losses
    assert ((counters["achieved_occupancy"] > 0) & (counters["achieved_occupancy"] <= 1)).all()
    assert ((counters["ipc"] > 0) & (counters["ipc"] < 8)).all()
    hits, loads = counters["l2_tex_hit_rate"], counters["gld_efficiency"]
    assert ((hits[np.isfinite(hits)] >= 0) & (hits[np.isfinite(hits)] <= 100.5)).all()
    assert (loads[np.isfinite(loads)] >= 0).all()  # above 100 where threads read the same word
    assert (counters["inst_executed"] > 0).all()
    assert not result.simulated and result.metadata["counters"]["simulated"] is False


def test_an_elementwise_kernel_has_exactly_its_flops(x: Any) -> None:
    result = collect(lambda: x.mul_(1.5), metrics=["flop_count_sp", "flop_count_sp_mul", "flop_count_dp"])
    assert result.counters["flop_count_sp_mul"].tolist() == [x.numel()]
    assert result.counters["flop_count_sp"].tolist() == [x.numel()]
    assert result.counters["flop_count_dp"].tolist() == [0]


def test_a_gemm_has_its_flops(torch: Any, x: Any) -> None:
    m, n, k = 1024, 2048, 512
    a, b = torch.randn(m, k, device=DEVICE), torch.randn(k, n, device=DEVICE)
    before = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = False
    try:
        result = collect(lambda: a @ b, metrics=["flop_count_sp"])
    finally:
        torch.backends.cuda.matmul.allow_tf32 = before
    # Scaling by alpha and a split of k cost a little more than the product.
    assert 1.0 <= result.counters["flop_count_sp"].sum() / (2 * m * n * k) < 1.05


@pytest.fixture(scope="module")
def large(torch: Any, denied: str) -> Any:
    """Two tensors of 2 GiB, forty times what an L2 cache holds."""
    if denied:
        pytest.skip(f"counters are denied here: {denied}")
    source = torch.ones(1 << 29, device=DEVICE)
    return source, torch.empty_like(source)


def test_a_large_copy_moves_its_bytes(torch: Any, large: Any) -> None:
    source, target = large
    result = collect(lambda: torch.mul(source, 1.5, out=target), metrics=["dram_read_bytes", "dram_write_bytes"])
    for name in ("dram_read_bytes", "dram_write_bytes"):
        [value] = result.counters[name]
        assert abs(value / source.nbytes - 1) < 0.05, name


def test_samples_of_a_large_copy_agree_with_replay(torch: Any, large: Any) -> None:
    source, target = large

    def work() -> None:
        for _ in range(100):
            torch.mul(source, 1.5, out=target)
        torch.cuda.synchronize()

    sampled = collect(work, metrics=["dram_read_bytes"], strategy="sample", sampling_interval="50us")
    [kernel] = np.flatnonzero(sampled.metric_ranges["kind"] == 2)
    assert sampled.counters.column("dram_read_bytes", "count")[kernel] > 100
    assert abs(sampled.counters["dram_read_bytes"][kernel] / source.nbytes - 1) < 0.1
    assert np.isfinite(sampled.kernels["dram_read_bytes"]).all()


def test_the_same_kernel_has_the_same_instructions(x: Any) -> None:
    def work() -> None:
        for _ in range(50):
            x.mul_(1.5)

    for metrics in (["inst_executed"], SEVERAL):  # direct, and replayed
        result = collect(work, metrics=metrics, strategy="replay")
        assert len(result.metric_ranges) == 50 and len(set(result.counters["inst_executed"].tolist())) == 1
        np.testing.assert_array_equal(result.kernels["inst_executed"], result.counters["inst_executed"])


def test_iterate_has_the_mean_of_replay(x: Any) -> None:
    names = ["inst_executed", *CHEAP, "gld_efficiency", "flop_count_sp_mul", "stall_sync"]

    def work() -> None:
        for _ in range(24):
            x.mul_(1.5)
            x.sin_()

    replayed = collect(work, metrics=names, strategy="replay")
    iterated = collect(work, metrics=names, strategy="iterate")
    groups = iterated.metadata["counters"]["groups"]
    assert len(groups) > 1 and set(iterated.metric_ranges["passes"]) == {len(groups)}
    assert sorted(iterated.metric_ranges["occurrences"]) == [24, 24] and not iterated.losses
    for kernel, value in zip(iterated.metric_ranges["name"], iterated.counters["inst_executed"], strict=True):
        mine = replayed.metric_ranges["name"] == kernel
        assert set(replayed.counters["inst_executed"][mine].tolist()) == {value}
    assert len(iterated.kernels) == 48


def test_iterate_over_steps(x: Any) -> None:
    names = [*CHEAP, "inst_executed", "gld_efficiency", "stall_sync"]
    with cuptiprof.profile(metrics=names, strategy="iterate") as prof:
        for _ in range(12):
            x.mul_(1.5)
            prof.step()
    result = prof.result()
    groups = len(result.metadata["counters"]["groups"])
    assert len(result.metric_ranges) == 1 and set(result.metric_ranges["passes"]) == {groups}
    assert result.counters.column("gld_efficiency", "count").tolist() == [12 / groups]


def test_a_range_over_n_launches_has_n_times_one(x: Any) -> None:
    def work() -> None:
        for n in (1, 10):
            with cuptiprof.region(f"launches {n}"):
                for _ in range(n):
                    x.mul_(1.5)

    result = collect(work, metrics=["inst_executed"], strategy="range")
    one, ten = result.counters["inst_executed"]
    assert list(result.metric_ranges["name"]) == ["launches 1", "launches 10"] and one > 0
    assert ten == 10 * one


def test_several_passes_of_a_region_need_repeated_work(x: Any) -> None:
    with pytest.raises(MetricError, match=r"need \d+ passes"):
        cuptiprof.profile(metrics=SEVERAL, strategy="range").start()
    calls = 0

    def work() -> None:
        nonlocal calls
        calls += 1
        for name in ("first", "second"):
            with cuptiprof.region(name):
                x.mul_(1.5)

    with cuptiprof.profile(metrics=SEVERAL, strategy="range", repeatable=True) as prof:
        prof.repeat(work)
    result = prof.result()
    assert calls == result.metadata["counters"]["passes"] > 1
    assert list(result.metric_ranges["name"]) == ["first", "second"]
    assert len(set(result.counters["inst_executed"].tolist())) == 1


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
