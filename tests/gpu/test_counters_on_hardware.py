"""Values of counters on a real GPU (marker ``gpu``) against what physics decides, and strategies against each other.

Kernels are PyTorch's element-wise ones, whose work is known: ``mul_`` of n floats multiplies n times, reads and writes 4n bytes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hardware_counters import CHEAP, DEVICE, SEVERAL, collect

import cuptiprof
from cuptiprof.device.locate import driver_present
from cuptiprof.errors import MetricError

pytest_plugins = ["hardware_fixtures"]
pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not driver_present(), reason="no NVIDIA driver on this machine"),
]


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
