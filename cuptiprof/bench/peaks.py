"""Peak rates of a chip, dense: operations/s by element type, DRAM bytes/s."""

from __future__ import annotations

import math

from cuptiprof.bench.gpu import Gpu
from cuptiprof.device.driver import DeviceAttribute
from cuptiprof.errors import BenchError
from cuptiprof.sim.roofline import CHIPS

# Operations a clock and SM (a fused multiply-add is two), dense. NVIDIA: CUDA C++ Programming Guide, "Arithmetic Instructions"
# (float32, float64), and the architecture white papers (tensor cores; half of the figures with sparsity).
# Columns: float32, float64, tf32, float16 and bfloat16, int8 and float8; 0: the chip computes it otherwise.
_TYPES = ("float32", "float64", "tf32", "half", "byte")
_PER_SM_CLOCK: dict[tuple[int, int], tuple[int, int, int, int, int]] = {
    (7, 0): (128, 64, 0, 1024, 0),
    (7, 5): (128, 4, 0, 1024, 2048),
    (8, 0): (128, 128, 1024, 2048, 4096),  # float64 on tensor cores
    (8, 6): (
        256,
        4,
        512,
        1024,
        2048,
    ),  # GeForce boards of 8.6, 8.9 and 12.0 accumulate floats in float32 at half of this
    (8, 9): (256, 4, 512, 1024, 2048),
    (9, 0): (256, 256, 2048, 4096, 8192),  # float64 on tensor cores
    (10, 0): (256, 128, 4096, 8192, 16384),
    (12, 0): (256, 4, 512, 1024, 2048),
}
_COLUMN = {
    "float32": "float32",
    "float64": "float64",
    "tf32": "tf32",
    "float16": "half",
    "bfloat16": "half",
    "int8": "byte",
    "float8": "byte",
}


def peak_flop_rate(gpu: Gpu, dtype: str) -> float:
    """Operations/s at the highest SM clock; NaN where the chip is not known.

    Raises:
        BenchError: no such element type.
    """
    check_dtype(dtype)
    if gpu.device is None:
        return math.nan
    if gpu.device.simulated:
        chip = CHIPS[gpu.chip]
        return chip.peak("float32", tf32=True) if dtype == "tf32" else chip.peak(dtype)
    attribute = gpu.attribute
    compute = attribute(DeviceAttribute.COMPUTE_CAPABILITY_MAJOR), attribute(DeviceAttribute.COMPUTE_CAPABILITY_MINOR)
    rates = _PER_SM_CLOCK.get(compute)
    if rates is None:
        return math.nan
    if dtype == "float8" and compute < (8, 9):
        return math.nan  # the column is that of int8 there
    rate = rates[_TYPES.index(_COLUMN[dtype])]
    return (
        rate * attribute(DeviceAttribute.MULTIPROCESSOR_COUNT) * attribute(DeviceAttribute.CLOCK_RATE) * 1e3 or math.nan
    )


def peak_byte_rate(gpu: Gpu) -> float:
    """DRAM bytes/s: twice the memory clock (both edges) over the width of the bus; NaN where the driver does not say."""
    if gpu.device is None:
        return math.nan
    if gpu.device.simulated:
        return CHIPS[gpu.chip].dram
    hertz = gpu.attribute(DeviceAttribute.MEMORY_CLOCK_RATE) * 1e3
    return 2 * hertz * gpu.attribute(DeviceAttribute.GLOBAL_MEMORY_BUS_WIDTH) / 8 or math.nan


def check_dtype(dtype: str) -> None:
    """Raises BenchError unless it is an element type known here, or empty."""
    if dtype and dtype not in _COLUMN:
        raise BenchError(f"unknown dtype={dtype!r}", hint=f"one of: {', '.join(_COLUMN)}")
