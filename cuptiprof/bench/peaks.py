"""Peak rates of a chip, dense: operations/s by element type, DRAM bytes/s."""

from __future__ import annotations

import math

from cuptiprof.data.chips import BOARDS, flops_per_clock
from cuptiprof.device.driver import DeviceAttribute
from cuptiprof.device.gpu import Meter
from cuptiprof.errors import BenchError

_COLUMN = {
    "float32": "float32",
    "float64": "float64",
    "tf32": "tf32",
    "float16": "half",
    "bfloat16": "half",
    "int8": "byte",
    "float8": "byte",
}


def peak_flop_rate(gpu: Meter, dtype: str, sm_mhz: float = 0.0) -> float:
    """Operations/s at an SM clock, MHz (0: the highest); NaN where the chip is not known.

    Raises:
        BenchError: no such element type.
    """
    check_dtype(dtype)
    if gpu.device is None:
        return math.nan
    if gpu.device.simulated:
        board = BOARDS[gpu.chip]
        share = min(sm_mhz * 1e3 / board.clock_khz, 1.0) if sm_mhz else 1.0
        return share * (board.peak("float32", tf32=True) if dtype == "tf32" else board.peak(dtype))
    attribute = gpu.attribute
    compute = attribute(DeviceAttribute.COMPUTE_CAPABILITY_MAJOR), attribute(DeviceAttribute.COMPUTE_CAPABILITY_MINOR)
    rates = flops_per_clock().get(compute)
    if rates is None:
        return math.nan
    if dtype == "float8" and compute < (8, 9):
        return math.nan  # the column is that of int8 there
    rate = rates[_COLUMN[dtype]]
    hertz = sm_mhz * 1e6 or attribute(DeviceAttribute.CLOCK_RATE) * 1e3
    return rate * attribute(DeviceAttribute.MULTIPROCESSOR_COUNT) * hertz or math.nan


def peak_byte_rate(gpu: Meter) -> float:
    """DRAM bytes/s: twice the memory clock (both edges) over the width of the bus; NaN where the driver does not say."""
    if gpu.device is None:
        return math.nan
    if gpu.device.simulated:
        return BOARDS[gpu.chip].dram
    hertz = gpu.attribute(DeviceAttribute.MEMORY_CLOCK_RATE) * 1e3
    return 2 * hertz * gpu.attribute(DeviceAttribute.GLOBAL_MEMORY_BUS_WIDTH) / 8 or math.nan


def check_dtype(dtype: str) -> None:
    """Raises BenchError unless it is an element type known here, or empty."""
    if dtype and dtype not in _COLUMN:
        raise BenchError(f"unknown dtype={dtype!r}", hint=f"one of: {', '.join(_COLUMN)}")
