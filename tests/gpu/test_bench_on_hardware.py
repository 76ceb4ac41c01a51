"""The harness on a real GPU (marker ``gpu``): the strategies agree with each other and with what is known."""

from __future__ import annotations

import numpy as np
import pytest

import cuptiprof
from cuptiprof.bench import Kernel
from cuptiprof.device.locate import driver_present
from cuptiprof.errors import BenchError

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not driver_present(), reason="no NVIDIA driver on this machine"),
]


@pytest.fixture(scope="module")
def torch():  # type: ignore[no-untyped-def]
    module = pytest.importorskip("torch")
    if not module.cuda.is_available():
        pytest.skip("this torch has no CUDA")
    return module


def test_the_strategies_agree_on_a_long_kernel(torch) -> None:  # type: ignore[no-untyped-def]
    a = torch.randn(4096, 4096, device="cuda")

    def work() -> None:
        torch.mm(a, a)

    kernel, event, graph, wall = (cuptiprof.bench(work, strategy=s) for s in ("kernel", "event", "graph", "wall"))
    for other in (event, graph, wall):
        assert other.median == pytest.approx(kernel.median, rel=0.05), other
    assert cuptiprof.bench(work, strategy="cpu").median < kernel.median / 2


@pytest.mark.parametrize("strategy", ["kernel", "event", "graph"])
@pytest.mark.parametrize("cycles", [20_000, 200_000, 2_000_000])
def test_a_kernel_of_known_cycles(torch, strategy: str, cycles: int) -> None:  # type: ignore[no-untyped-def]
    """``torch.cuda._sleep`` spins until the SM's own clock has gone on by so many cycles: what is known beforehand. Beginning and
    ending a kernel may take up to 2 us more."""
    m = cuptiprof.bench(torch.cuda._sleep, cycles, strategy=strategy)
    overhead = 2e-6 * float(m.sm_hz.mean())
    assert cycles * 0.99 <= float(np.median(m.cycles())) <= cycles * 1.01 + overhead


def test_many_short_kernels(torch) -> None:  # type: ignore[no-untyped-def]
    x = torch.zeros(1024, device="cuda")

    def work() -> None:
        for _ in range(20):
            x.add_(1)

    by_sum, by_span = cuptiprof.bench(work), cuptiprof.bench(work, strategy=Kernel(span=True))
    graph = cuptiprof.bench(work, strategy="graph")
    assert by_sum.kernels[0].calls == 20 and not by_sum.discarded
    assert by_sum.median <= graph.median * 1.2 and graph.median <= by_span.median * 1.2


def test_a_cold_l2_is_slower_than_a_warm_one(torch) -> None:  # type: ignore[no-untyped-def]
    x = torch.ones(2 << 20, device="cuda")  # 8 MB

    def work() -> None:
        x.sum()

    warm, cold = cuptiprof.bench(work, l2="warm"), cuptiprof.bench(work, l2="cold")
    assert cold.median > 1.05 * warm.median


def test_a_function_is_the_same_as_itself(torch) -> None:  # type: ignore[no-untyped-def]
    a = torch.randn(1024, 1024, device="cuda")
    found = cuptiprof.compare({"one": lambda: torch.mm(a, a), "two": lambda: torch.mm(a, a)})
    assert not found.verdicts["two"].differs


def test_counters_and_roofline(torch) -> None:  # type: ignore[no-untyped-def]
    x, y = torch.ones(1 << 26, device="cuda"), torch.empty(1 << 26, device="cuda")
    m = cuptiprof.bench(lambda: torch.add(x, 1.0, out=y), metrics="achieved_occupancy", flops=1 << 26, bytes="measured", dtype="float32")  # fmt: skip
    if any("could not be read" in n for n in m.notes):
        assert any("privileges" in n or "PRIVILEGES" in n or "administrators" in n for n in m.notes), m.notes
        return
    assert 0 < m.counter("achieved_occupancy") <= 1
    assert m.roofline is not None and m.roofline.bytes == pytest.approx(2 * x.nbytes, rel=0.1)
    assert m.roofline.bound == "memory" and 0.4 < m.roofline.share < 1.0


def test_what_cannot_be_measured(torch) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(BenchError, match="nothing to do"):
        cuptiprof.bench(lambda: None)
    x = torch.ones(8, device="cuda")
    with pytest.raises(BenchError, match="captured"):
        cuptiprof.bench(lambda: x.sum().item(), strategy="graph")
    assert float(x.sum()) == 8  # the failed capture has left nothing behind


def test_events_of_short_kernels_do_not_show_the_hosts_pace(torch) -> None:  # type: ignore[no-untyped-def]
    """A kernel of a microsecond or two, which Python launches every five or more: what is between kernels of a full stream is left."""
    x = torch.zeros(1024, device="cuda")
    kernel = cuptiprof.bench(x.add_, 1)
    for strategy in ("event", "graph"):
        m = cuptiprof.bench(x.add_, 1, strategy=strategy)
        assert m.batch > 50 and kernel.median <= m.median < kernel.median + 3_000, m
        assert not any("waits for the host" in n for n in m.notes), m.notes


def test_inputs_in_turn_are_as_cold_as_after_a_flush(torch) -> None:  # type: ignore[no-untyped-def]
    x = torch.ones(2 << 20, device="cuda")  # 8 MB
    warm, cold, rotated = (cuptiprof.bench(torch.sum, x, l2=l2) for l2 in ("warm", "cold", "rotate"))
    assert rotated.median > 1.05 * warm.median and rotated.median == pytest.approx(cold.median, rel=0.2)


def test_the_clock_that_the_gpu_counts_is_the_one_that_nvml_reads(torch) -> None:  # type: ignore[no-untyped-def]
    a = torch.randn(4096, 4096, device="cuda")
    for strategy in ("kernel", "event", "graph"):
        m = cuptiprof.bench(lambda: torch.mm(a, a), strategy=strategy)
        assert len(m.sm_hz) == len(m.samples), m.notes
        if "locked" not in str(m.notes) and m.environment["clocks"].get("power_w"):  # power: NVML was there
            assert float(m.sm_hz.mean()) / 1e6 == pytest.approx(m.environment["clocks"]["sm_mhz"], rel=0.05)


def test_energy_and_memory_of_a_matrix_product(torch) -> None:  # type: ignore[no-untyped-def]
    a = torch.randn(8192, 8192, device="cuda")
    m = cuptiprof.bench(lambda: torch.mm(a, a), energy=True, memory=True)
    assert m.peak_memory == pytest.approx(4 * 8192**2, rel=0.2)
    power = m.environment["clocks"].get("power_w")
    if power and m.energy_per_call == m.energy_per_call:
        assert m.energy_per_call == pytest.approx(power * m.median / 1e9, rel=0.3)


def test_locked_clocks(torch) -> None:  # type: ignore[no-untyped-def]
    a = torch.randn(2048, 2048, device="cuda")
    try:
        m = cuptiprof.bench(lambda: torch.mm(a, a), lock_clocks=1005)
    except BenchError as e:
        assert "root" in e.hint or "Volta" in e.hint or "lock_clocks" in e.hint
    else:
        assert float(m.sm_hz.mean()) == pytest.approx(1005e6, rel=0.02), m.notes


def test_a_stream_that_is_named_by_events_and_graphs_of_the_driver(torch) -> None:  # type: ignore[no-untyped-def]
    """The way of CuPy's and Numba's functions, with PyTorch's work."""
    a = torch.randn(2048, 2048, device="cuda")
    s = torch.cuda.Stream()

    def work() -> None:
        with torch.cuda.stream(s):
            torch.mm(a, a)

    kernel = cuptiprof.bench(work)
    event = cuptiprof.bench(work, strategy="event", stream=s)
    assert event.median == pytest.approx(kernel.median, rel=0.05)
