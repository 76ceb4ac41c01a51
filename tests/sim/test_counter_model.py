"""The simulated device's counters: what a kernel's values are."""

from __future__ import annotations

import math

import pytest
from counter_abi import CounterApi
from counter_objects import Host, kernel

from cuptiprof.data.chips import BOARDS
from cuptiprof.errors import DeviceError
from cuptiprof.sim.sim_device import SimDevice


def test_given_counter_has_every_roll_up(sim: SimDevice) -> None:
    sim.set_counter("sm__inst_executed", 1_320_000, "k")
    sim.set_counter("sm__cycles_active", 132 * 10_000, "k")
    op = kernel(sim, "k", 20_000)  # 39,600 cycles at 1.98 GHz
    expected = {
        "sum": 1_320_000,
        "avg": 10_000,
        "min": 10_000,
        "max": 10_000,
        "sum.per_second": 1_320_000 / 20e-6,
        "avg.per_second": 10_000 / 20e-6,
        "avg.per_cycle_active": 1.0,
        "sum.per_cycle_active": 132.0,
        "avg.per_cycle_elapsed": 10_000 / 39_600,
        "avg.peak_sustained": 4,
        "sum.peak_sustained": 4 * 132,
        "avg.peak_sustained_active": 40_000,
        "sum.peak_sustained_active.per_second": 4 * 132 * 10_000 / 20e-6,
        "avg.peak_sustained_elapsed": 4 * 39_600,
        "avg.peak_sustained_elapsed.per_second": 4 * 39_600 / 20e-6,
        "avg.pct_of_peak_sustained_active": 25.0,
        "sum.pct_of_peak_sustained_active": 25.0,
        "max.pct_of_peak_sustained_elapsed": 100 * 10_000 / (4 * 39_600),
    }
    for suffix, value in expected.items():
        assert sim.true_metric(f"sm__inst_executed.{suffix}", op)[0] == pytest.approx(value, rel=1e-12), suffix
    # What a sub-partition counts adds up to the SM's count.
    assert sim.true_metric("smsp__inst_executed.sum", op)[0] == 1_320_000
    assert sim.true_metric("gpu__time_duration.sum", op)[0] == 20_000


def test_given_counters_make_ratios_and_throughputs(sim: SimDevice) -> None:
    sim.set_counter("lts__t_sectors", 1000)
    sim.set_counter("lts__t_sectors_lookup_hit", 250)
    op = kernel(sim, "any")
    assert sim.true_metric("lts__t_sector_hit_rate.pct", op)[0] == 25
    assert sim.true_metric("lts__t_sector_hit_rate.ratio", op)[0] == 0.25
    assert sim.true_metric("lts__t_sector_hit_rate.max_rate", op)[0] == 1
    before = sim.true_metric("dram__throughput.avg.pct_of_peak_sustained_elapsed", op)[0]
    sim.set_counter("dram__bytes", sim.true_metric("dram__bytes.sum.peak_sustained_elapsed", op)[0])
    assert sim.true_metric("dram__throughput.avg.pct_of_peak_sustained_elapsed", op)[0] == pytest.approx(100)
    assert before < 100
    sim.clear_counters()
    assert sim.true_metric("dram__throughput.avg.pct_of_peak_sustained_elapsed", op)[0] == before


def test_what_is_not_a_counter_cannot_be_given(sim: SimDevice) -> None:
    for name in ("sm__throughput", "lts__t_sector_hit_rate", "sm__cycles_elapsed", "gpu__time_duration", "nonsense"):
        with pytest.raises(DeviceError):
            sim.set_counter(name, 1)
    for value in (-1.0, math.nan, math.inf):
        with pytest.raises(DeviceError):
            sim.set_counter("sm__inst_executed", value)


def test_every_metric_of_every_chip_has_a_plausible_true_value(sim: SimDevice) -> None:
    for chip, cupti in {b.chip: (b.name, b.chip) for b in BOARDS.values()}.values():
        sim.reset(chip=chip, virtual_clock=True)
        host, op, seen = Host(CounterApi(), cupti), kernel(sim, "gemm"), 0
        for kind in range(3):
            for base in host.bases(kind):
                for suffix in host.subs(base, kind):
                    value = sim.true_metric(base + suffix, op)[0]
                    assert value >= 0 and math.isfinite(value), base + suffix
                    seen += 1
                if base.endswith("hit_rate"):
                    assert sim.true_metric(base + ".pct", op)[0] <= 100, base
                elif kind == 0 and "peak_sustained" not in base:
                    assert sim.true_metric(base + ".sum", op)[0] > 0, base
        assert seen > 5000


def test_values_depend_on_the_kernel_alone(sim: SimDevice) -> None:
    name = "dram__bytes.sum"
    a, b = kernel(sim, "a"), kernel(sim, "b")
    first = sim.true_metric(name, a)[0]
    sim.run(b)
    sim.run(a)
    sim.advance(sim.now() + 10**9)
    assert sim.true_metric(name, a)[0] == first
    for other in (
        b,
        kernel(sim, "a", 20_000),
        kernel(sim, "a", grid=(1, 1, 1)),
        kernel(sim, "a", dynamic_shared_memory=64),
    ):
        assert sim.true_metric(name, other)[0] != first
    sim.reset(chip="A100", virtual_clock=True)
    assert sim.true_metric(name, a)[0] != first
