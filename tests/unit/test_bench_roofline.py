"""Peaks of chips and the position under them."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import pytest

from cuptiprof.bench import CounterValue
from cuptiprof.bench.attained import make_roofline, roof_notes
from cuptiprof.bench.counted_calls import Demand, Read
from cuptiprof.bench.peaks import element_type, peak_byte_rate, peak_flop_rate
from cuptiprof.data.chips import BOARDS
from cuptiprof.device.driver import DeviceAttribute
from cuptiprof.errors import BenchError

# What the driver says of boards that NVIDIA's data sheets describe (clock: boost, as the sheets count).
DRIVER_SAYS = {  # SMs, kHz of an SM and of the memory, bits of its bus, compute capability
    "H100": (132, 1_830_000, 2_619_000, 5120, 9, 0),
    "A100": (108, 1_410_000, 1_593_000, 5120, 8, 0),
    "A10": (72, 1_695_000, 6_251_000, 384, 8, 6),
    "V100": (80, 1_530_000, 877_000, 4096, 7, 0),
}


def gpu(board: str, **changes: int) -> Any:
    said = dict(
        zip(
            (
                DeviceAttribute.MULTIPROCESSOR_COUNT,
                DeviceAttribute.CLOCK_RATE,
                DeviceAttribute.MEMORY_CLOCK_RATE,
                DeviceAttribute.GLOBAL_MEMORY_BUS_WIDTH,
                DeviceAttribute.COMPUTE_CAPABILITY_MAJOR,
                DeviceAttribute.COMPUTE_CAPABILITY_MINOR,
            ),
            DRIVER_SAYS[board],
            strict=True,
        )
    ) | {DeviceAttribute[name]: value for name, value in changes.items()}
    return SimpleNamespace(device=SimpleNamespace(simulated=False), attribute=said.__getitem__)


SIMULATED: Any = SimpleNamespace(device=SimpleNamespace(simulated=True), chip="H100")


@pytest.mark.parametrize("chip", ["H100", "A100", "V100"])
def test_peaks_from_the_driver_are_those_of_the_data_sheet(chip: str) -> None:
    real, sheet = gpu(chip), BOARDS[chip]
    assert peak_byte_rate(real) == pytest.approx(sheet.dram, rel=0.01)
    assert peak_flop_rate(real, "float16") == pytest.approx(sheet.half, rel=0.01)
    assert peak_flop_rate(real, "float32") == pytest.approx(sheet.float32, rel=0.08)  # H100's sheet has 1.98 GHz there
    if sheet.tf32:
        assert peak_flop_rate(real, "tf32") == pytest.approx(sheet.tf32, rel=0.01)
        assert peak_flop_rate(real, "int8") == pytest.approx(sheet.int8, rel=0.01)


def test_a_chip_that_nobody_knows_has_no_peak() -> None:
    new = gpu("H100", COMPUTE_CAPABILITY_MAJOR=99)
    assert math.isnan(peak_flop_rate(new, "float32")) and peak_byte_rate(new) > 0
    silent = gpu("H100", MEMORY_CLOCK_RATE=0)
    assert math.isnan(peak_byte_rate(silent))
    with pytest.raises(BenchError, match="float7"):
        peak_flop_rate(new, "float7")


def test_the_nearest_roof() -> None:
    h100 = SIMULATED
    for flops, amount, bound in ((1e9, 1e3, "compute"), (1e6, 1e6, "memory")):
        r = make_roofline(h100, Demand(flops=flops, bytes=amount, dtype="bfloat16"), Read(), 10_000)
        assert r is not None and r.bound == bound
        peaks = {"compute": flops / 1e-5 / BOARDS["H100"].half, "memory": amount / 1e-5 / BOARDS["H100"].dram}
        assert r.share == pytest.approx(peaks[bound]) and r.intensity == flops / amount
    only_bytes = make_roofline(h100, Demand(bytes=3.35e6), Read(), 2_000)
    assert only_bytes is not None and only_bytes.bound == "memory" and only_bytes.share == pytest.approx(0.5)
    without_dtype = make_roofline(h100, Demand(flops=1e9), Read(), 10_000)
    assert without_dtype is not None and without_dtype.bound == "" and math.isnan(without_dtype.share)
    assert make_roofline(h100, Demand(), Read(), 10_000) is None


def test_operations_of_two_pipes_have_the_peak_of_their_mix() -> None:
    """1 TFLOP/s of 10 on one pipe and 60 of 100 on the other: 70 % of the time at full speed."""
    values = {
        "roofline_fp32_achieved": (1e12, "flop/s"),
        "roofline_fp32_peak": (10e12, "flop/s"),
        "roofline_tensor_x_achieved": (60e12, "op/s"),
        "roofline_tensor_x_peak": (100e12, "op/s"),
        "roofline_fp64_achieved": (0.0, "flop/s"),
        "roofline_fp64_peak": (5e12, "flop/s"),
        "roofline_dram_achieved": (1e12, "byte/s"),
        "roofline_dram_peak": (3e12, "byte/s"),
        "gpu__time_duration.sum": (10_000.0, "ns"),
    }
    read = Read(all=tuple(CounterValue(n, v, u) for n, (v, u) in values.items()))
    r = make_roofline(SIMULATED, Demand(measure_flops=True), read, 10_000)
    assert r is not None
    assert r.flops == pytest.approx(61e12 * 10e-6)
    assert r.share == pytest.approx(0.7) and r.bound == "compute" and "tensor_x" in r.source


def test_the_time_under_the_roof_is_work_over_peak() -> None:
    """33.55 MFLOP at 6 TFLOP/s are 5.59 us: what 71.96 us measured fall short of (2 m n k of 512 x 512 x 64)."""
    import numpy as np

    from cuptiprof.bench import Interval, Measurement, Roofline

    flops, peak, ns = 2.0 * 512 * 512 * 64, 6e12, 71_960.0
    share = flops / ns * 1e9 / peak
    roof = Roofline(flops, math.nan, flops / ns * 1e9, math.nan, peak, math.nan, math.nan, "compute", share, "given")
    m = Measurement("gemm", "kernel", np.array([ns]), np.zeros(1), Interval(ns, ns, ns), roofline=roof)
    assert "under which it takes 5.5920us" in str(m) and "7.8 % of peak" in str(m)


def test_amounts_and_times_of_nothing_have_no_rates() -> None:
    """Data that stay in the L2 move no DRAM byte; a function whose calls mostly launch nothing has a median of 0."""
    read = Read(all=(CounterValue("dram__bytes.sum", 0.0, "byte"),))
    r = make_roofline(SIMULATED, Demand(flops=1e6, dtype="float32", measure_bytes=True), read, 10_000)
    assert r is not None and math.isnan(r.intensity) and r.byte_rate == 0 and r.bound == "compute"
    idle = make_roofline(SIMULATED, Demand(flops=1e6, bytes=1e6, dtype="float32"), Read(), 0.0)
    assert idle is not None and math.isnan(idle.flop_rate) and math.isnan(idle.byte_rate) and idle.bound == ""


def test_peaks_of_the_a10() -> None:
    """Its data sheet, dense: 62.5 TFLOP/s TF32, 125 float16, 250 TOPS int8; it has no float8."""
    a10 = gpu("A10")
    for dtype, peak in (("tf32", 62.5e12), ("bfloat16", 125e12), ("int8", 250e12)):
        assert peak_flop_rate(a10, dtype) == pytest.approx(peak, rel=0.01)
    assert math.isnan(peak_flop_rate(a10, "float8"))
    assert peak_byte_rate(a10) == pytest.approx(600e9, rel=0.01)


def test_peaks_are_those_of_the_clock_that_was_measured() -> None:
    """A GPU that was held at half of its clock and did half of its peak did all that it could."""
    a100 = gpu("A100")
    demand = Demand(flops=156e6, dtype="bfloat16")  # at 312 TFLOP/s: 0.5 us
    half = make_roofline(a100, demand, Read(), 1_000, {"sm_mhz": 705.0})
    assert half is not None and half.share == pytest.approx(1.0, rel=0.01) and "705 MHz, as measured" in half.source
    unread = make_roofline(a100, demand, Read(), 1_000)
    assert unread is not None and unread.share == pytest.approx(0.5, rel=0.01) and "highest clock" in unread.source


def test_above_a_roof_is_said() -> None:
    many = make_roofline(SIMULATED, Demand(bytes=6.7e6), Read(), 1_000)  # twice the DRAM's
    (note,) = roof_notes(many, "warm")
    assert "200 % of the peak of DRAM" in note and "l2='cold'" in note
    assert "l2='cold'" not in roof_notes(many, "cold")[0]
    (note,) = roof_notes(make_roofline(SIMULATED, Demand(flops=1e12, dtype="float64"), Read(), 1_000), "warm")
    assert "dtype=" in note
    at_the_roof = make_roofline(SIMULATED, Demand(bytes=3.36e6, flops=67e6, dtype="float32"), Read(), 1_000)
    assert roof_notes(at_the_roof, "warm") == [] and roof_notes(None, "warm") == []


def test_element_types_by_whatever_name() -> None:
    import numpy as np
    import torch

    for name, given in {
        "float16": ["half", "fp16", "torch.float16", torch.float16, np.float16, np.dtype("float16"), " FP16 "],
        "float32": ["float", torch.float, np.dtype("f4"), "numpy.float32"],
        "bfloat16": [torch.bfloat16, "bf16"],
        "float8": ["fp8", torch.float8_e4m3fn, torch.float8_e5m2, "float8_e4m3fnuz", "e5m2"],
        "float4": ["fp4", "nvfp4", "float4_e2m1fn_x2"],
        "int8": [torch.int8, np.uint8],
        "": [""],
    }.items():
        assert [element_type(g) for g in given] == [name] * len(given)
    for wrong, guess in (("blfoat16", "bfloat16"), ("float61", "float16"), (torch.complex64, ""), (3, "")):
        with pytest.raises(BenchError, match="unknown dtype") as caught:
            element_type(wrong)
        assert f"did you mean {guess}" in str(caught.value) if guess else True


def test_peaks_of_narrow_types_where_there_are_such() -> None:
    """B200, dense: 4.5 PFLOP/s float8 and 9 float4 by NVIDIA's data sheet; RTX 5090: 838 and 1676 TFLOP/s."""
    b200: Any = SimpleNamespace(device=SimpleNamespace(simulated=True), chip="B200")
    assert peak_flop_rate(b200, "fp8") == 4.5e15 and peak_flop_rate(b200, "nvfp4") == 9e15
    assert peak_flop_rate(SIMULATED, "fp8") == 1979e12 and math.isnan(peak_flop_rate(SIMULATED, "fp4"))
    a100: Any = SimpleNamespace(device=SimpleNamespace(simulated=True), chip="A100")
    assert math.isnan(peak_flop_rate(a100, "fp8"))
    rtx5090 = gpu("H100", COMPUTE_CAPABILITY_MAJOR=12, MULTIPROCESSOR_COUNT=170, CLOCK_RATE=2_407_000)
    assert peak_flop_rate(rtx5090, "fp4") == pytest.approx(1676e12, rel=0.01)
    assert peak_flop_rate(rtx5090, "fp8") == pytest.approx(838e12, rel=0.01)
    assert math.isnan(peak_flop_rate(gpu("H100"), "fp4"))
