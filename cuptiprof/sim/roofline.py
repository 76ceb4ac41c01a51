"""How long simulated work takes: a roofline model of a stated chip.

A model, not a measurement:

    kernel = latency + max(operations / (peak * efficiency * fill), bytes / (bandwidth * efficiency))
    copy   = latency + bytes / (link bandwidth * efficiency)

`fill` is wave quantisation: the share of SMs that the last wave of blocks leaves busy, for kernels that run one block an
SM. Peaks are NVIDIA's data sheets; latency and efficiencies are assumptions and stand here, each with its reason. Not
modelled: caches, clocks and power, contention of kernels that overlap.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

KERNEL_LATENCY_NS = 2000
"""Assumption: what the shortest kernel or copy takes; profilers show 1.5 to 3 us for empty kernels on all these chips."""

COMPUTE_EFFICIENCY = {"gemm": 0.75, "conv": 0.6, "attention": 0.5, "other": 0.5}
"""Assumption: share of the peak that a full grid reaches. Large cuBLAS products reach 70 to 80 %, convolutions and
attention less; everything else is bound by memory on these chips anyway."""

MEMORY_EFFICIENCY = {"stream": 0.85, "reduce": 0.75, "random": 0.4}
"""Assumption: share of the DRAM peak: streaming kernels, reductions, and gathers and scatters by index."""

LINK_EFFICIENCY = 0.8
"""Assumption: share of PCIe's raw rate that a copy reaches, as from pinned memory."""


@dataclass(frozen=True)
class ChipRoofline:
    """Peak rates of a chip, dense: operations/s by way of computing, bytes/s of DRAM and host link (one direction).

    Attributes:
        float64, float32: outside of tensor cores.
        float64_tensor, tf32, half, int8: on tensor cores; 0 where the chip's have no such type. `half` is float16.
        bfloat16: whether tensor cores take bfloat16 (at the rate of float16).
        sms: streaming multiprocessors.
        architecture: compute capability * 10, e.g. 90.
    """

    architecture: int
    sms: int
    float64: float
    float64_tensor: float
    float32: float
    tf32: float
    half: float
    bfloat16: bool
    int8: float
    dram: float
    link: float

    def tensor_peak(self, dtype: str, *, tf32: bool = False) -> float:
        """Operations/s of a matrix product of elements `dtype` on tensor cores; 0 if they do not take it."""
        if dtype == "float64":
            return self.float64_tensor
        if dtype == "float16" or (dtype == "bfloat16" and self.bfloat16):
            return self.half
        if dtype.startswith("float8"):
            return self.int8 if self.architecture >= 89 else 0.0  # FP8 runs at the rate of INT8 where it exists
        if dtype == "int8":
            return self.int8
        return self.tf32 if dtype == "float32" and tf32 else 0.0

    def peak(self, dtype: str, *, tf32: bool = False) -> float:
        """Operations/s of a matrix product of elements `dtype` ("float32", "bfloat16", ...).

        Args:
            tf32: float32 may be rounded to TF32 (torch's ``allow_tf32``).
        """
        return self.tensor_peak(dtype, tf32=tf32) or self.vector_peak(dtype)

    def vector_peak(self, dtype: str) -> float:
        """Operations/s outside of tensor cores."""
        return self.float64 if dtype in ("float64", "complex128") else self.float32


# Data sheets, dense figures (where a sheet gives them with sparsity, half of it). Sources, all NVIDIA:
#   V100: "Tesla V100 Performance Guide"/data sheet, SXM2.      A100: "A100 Tensor Core GPU" data sheet, SXM 80 GB.
#   L4: "L4 Tensor Core GPU" data sheet; float64 = 1/64 of float32 (Ada architecture white paper).
#   H100, H200: data sheets, SXM.                               B200: HGX B200 data sheet, divided by its 8 GPUs.
# Links: PCIe 3.0, 4.0 and 5.0 x16, one direction.
CHIPS: dict[str, ChipRoofline] = {
    "V100": ChipRoofline(70, 80, 7.8e12, 0, 15.7e12, 0, 125e12, False, 0, 0.9e12, 15.75e9),
    "A100": ChipRoofline(80, 108, 9.7e12, 19.5e12, 19.5e12, 156e12, 312e12, True, 624e12, 2.039e12, 31.5e9),
    "L4": ChipRoofline(89, 58, 0.47e12, 0, 30.3e12, 60e12, 121e12, True, 242e12, 0.3e12, 31.5e9),
    "H100": ChipRoofline(90, 132, 34e12, 67e12, 67e12, 494.7e12, 989.4e12, True, 1979e12, 3.35e12, 63e9),
    "H200": ChipRoofline(90, 132, 34e12, 67e12, 67e12, 494.7e12, 989.4e12, True, 1979e12, 4.8e12, 63e9),
    "B200": ChipRoofline(100, 148, 37e12, 37e12, 75e12, 1100e12, 2250e12, True, 4500e12, 7.7e12, 63e9),
}


def fill(blocks: int, sms: int) -> float:
    """Share of the SMs at work on average when `blocks` run one an SM, in waves: 132 blocks on 132 SMs give 1, 133 half."""
    return blocks / (math.ceil(blocks / sms) * sms)


def kernel_ns(
    chip: ChipRoofline,
    *,
    operations: float = 0.0,
    peak: float | None = None,
    efficiency: str = "other",
    blocks: int | None = None,
    moved: float = 0.0,
    access: str = "stream",
) -> int:
    """Modelled duration of one kernel, ns.

    Args:
        operations: arithmetic operations (a multiply-add is two).
        peak: operations/s; default: float32 outside of tensor cores.
        efficiency: key of COMPUTE_EFFICIENCY.
        blocks: where given, the kernel runs one block an SM and loses what its last wave leaves idle.
        moved: bytes from and to DRAM.
        access: key of MEMORY_EFFICIENCY.
    """
    rate = (peak or chip.float32) * COMPUTE_EFFICIENCY[efficiency]
    if blocks:
        rate *= fill(blocks, chip.sms)
    memory = moved / (chip.dram * MEMORY_EFFICIENCY[access])
    return KERNEL_LATENCY_NS + round(1e9 * max(operations / rate, memory))


def copy_ns(chip: ChipRoofline, moved: float, *, on_device: bool = False) -> int:
    """Modelled duration of a copy of `moved` bytes, ns: over the host link, or within DRAM (read and written)."""
    if on_device:
        return kernel_ns(chip, moved=2 * moved)
    return KERNEL_LATENCY_NS + round(1e9 * moved / (chip.link * LINK_EFFICIENCY))
