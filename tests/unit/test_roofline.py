"""The roofline model: limits, peaks, waves."""

from __future__ import annotations

import pytest

from cuptiprof.data.chips import BOARDS
from cuptiprof.sim.roofline import (
    COMPUTE_EFFICIENCY,
    KERNEL_LATENCY_NS,
    MEMORY_EFFICIENCY,
    copy_ns,
    fill,
    kernel_ns,
)


@pytest.mark.parametrize("name", sorted(BOARDS))
def test_no_kernel_beats_the_peaks(name: str) -> None:
    chip = BOARDS[name]
    for dtype in ("float64", "float32", "float16", "bfloat16", "float8_e4m3fn", "int8"):
        for tf32 in (False, True):
            peak = chip.peak(dtype, tf32=tf32)
            assert peak >= chip.tensor_peak(dtype, tf32=tf32) and peak > 0
            ns = kernel_ns(chip, operations=1e13, peak=peak, efficiency="gemm")
            assert (ns - KERNEL_LATENCY_NS) / 1e9 * peak * COMPUTE_EFFICIENCY["gemm"] == pytest.approx(1e13, rel=1e-6)
    ns = kernel_ns(chip, moved=1e10)
    assert (ns - KERNEL_LATENCY_NS) / 1e9 * chip.dram * MEMORY_EFFICIENCY["stream"] == pytest.approx(1e10, rel=1e-6)


def test_the_slower_side_decides() -> None:
    chip = BOARDS["H100"]
    assert kernel_ns(chip) == KERNEL_LATENCY_NS
    compute, memory = kernel_ns(chip, operations=1e12), kernel_ns(chip, moved=1e9)
    assert kernel_ns(chip, operations=1e12, moved=1e9) == max(compute, memory)
    assert kernel_ns(chip, moved=1e9, access="random") > memory


def test_waves() -> None:
    assert fill(132, 132) == 1 and fill(133, 132) == pytest.approx(133 / 264) and fill(1, 100) == 0.01
    chip = BOARDS["A100"]
    one = kernel_ns(chip, operations=1e12, blocks=chip.sms)
    assert kernel_ns(chip, operations=1e12, blocks=chip.sms // 2) - KERNEL_LATENCY_NS == pytest.approx(
        2 * (one - KERNEL_LATENCY_NS), rel=1e-6
    )


def test_types_without_tensor_cores() -> None:
    v100, a100 = BOARDS["V100"], BOARDS["A100"]
    assert v100.tensor_peak("bfloat16") == 0 and v100.peak("bfloat16") == v100.float32
    assert v100.peak("float32", tf32=True) == v100.float32
    assert a100.peak("float32") == a100.float32 < a100.peak("float32", tf32=True) < a100.peak("float16")
    assert a100.tensor_peak("float8_e4m3fn") == 0 < BOARDS["H100"].tensor_peak("float8_e4m3fn")


def test_copies_over_the_link_are_slower_than_on_the_device() -> None:
    chip = BOARDS["H100"]
    assert copy_ns(chip, 1e9) > 10 * copy_ns(chip, 1e9, on_device=True)
    assert copy_ns(chip, 0) == KERNEL_LATENCY_NS
