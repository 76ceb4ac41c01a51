"""Peak rates of a chip, dense: operations/s by element type, DRAM bytes/s."""

from __future__ import annotations

import math
import re

from cuptiprof.data.chips import BOARDS, flops_per_clock
from cuptiprof.device.driver import DeviceAttribute
from cuptiprof.device.gpu import Meter
from cuptiprof.errors import BenchError
from cuptiprof.text.nearest import did_you_mean

_COLUMN = {
    "float32": "float32",
    "float64": "float64",
    "tf32": "tf32",
    "float16": "half",
    "bfloat16": "half",
    "int8": "byte",
    "float8": "byte",
    "float4": "float4",
}
_ALIASES = {
    "float64": ("double", "fp64", "f64"),
    "float32": ("float", "single", "fp32", "f32"),
    "tf32": ("tensorfloat32",),
    "float16": ("half", "fp16", "f16"),
    "bfloat16": ("bf16",),
    "int8": ("uint8", "i8", "u8"),
    "float8": ("fp8", "f8", "e4m3", "e5m2", "mxfp8"),
    "float4": ("fp4", "f4", "e2m1", "mxfp4", "nvfp4"),
}
_KNOWN = {alias: name for name, aliases in _ALIASES.items() for alias in (name, *aliases)}
_NARROW = re.compile(r"(float[48])_(e[0-9]m[0-9]).*")  # float8_e4m3fn, float4_e2m1fn_x2: PyTorch's, ml_dtypes'


def element_type(given: object) -> str:
    """The element type that is meant: by its own name or an alias, as PyTorch's, NumPy's or JAX's object; "" stays.

    Raises:
        BenchError: none that is known here.
    """
    name = given if isinstance(given, str) else getattr(given, "name", None) or getattr(given, "__name__", None)
    text = str(name if isinstance(name, str) else given).strip().lower().rpartition(".")[2]
    if not text:
        return ""
    if narrow := _NARROW.fullmatch(text):
        text = narrow[1]
    if text not in _KNOWN:
        raise BenchError(
            f"unknown dtype={str(given)[:80]!r}{did_you_mean(text, _KNOWN)}", hint=f"one of: {', '.join(_COLUMN)}"
        )
    return _KNOWN[text]


def peak_flop_rate(gpu: Meter, dtype: str, sm_mhz: float = 0.0) -> float:
    """Operations/s at an SM clock, MHz (0: the highest); NaN where the chip is not known.

    Raises:
        BenchError: no such element type.
    """
    dtype = element_type(dtype)
    if gpu.device is None:
        return math.nan
    if gpu.device.simulated:
        board = BOARDS[gpu.chip]
        if _COLUMN[dtype] in ("byte", "float4") and not board.tensor_peak(dtype):
            return math.nan  # it computes such elements otherwise
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
