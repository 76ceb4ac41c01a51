"""How long a simulated kernel takes: a roofline model of a stated chip.

A model, not a measurement: duration = latency + max(operations / (peak * efficiency), bytes / (bandwidth * efficiency)).
Peaks are the data sheets' dense figures; efficiencies and latency are assumptions, stated here.
"""

from __future__ import annotations

from dataclasses import dataclass

KERNEL_LATENCY_NS = 2000
"""Assumption: what the shortest kernel takes."""
COMPUTE_EFFICIENCY = 0.7
"""Assumption: share of peak that library kernels reach."""
MEMORY_EFFICIENCY = 0.8
"""Assumption: share of peak bandwidth that streaming kernels reach."""
PCIE_BYTES_PER_S = 25e9
"""Assumption: host to device copies."""


@dataclass(frozen=True)
class Roofline:
    """Peak rates of a chip: operations/s by element type, DRAM bytes/s, and its SM count and GEMM name prefix."""

    float64: float
    float32: float
    tf32: float
    half: float
    bytes_per_s: float
    sms: int
    gemm_prefix: str

    def peak(self, dtype: str, tensor_cores: bool) -> float:
        """Operations per second for an element type ("float32", "bfloat16", ...)."""
        if dtype == "float64":
            return self.float64
        if dtype in ("float16", "bfloat16"):
            return self.half if tensor_cores else 2 * self.float32
        return self.float32


# NVIDIA data sheets, dense figures, SXM parts where there are several.
CHIPS: dict[str, Roofline] = {
    "V100": Roofline(7.8e12, 15.7e12, 15.7e12, 125e12, 0.9e12, 80, "volta_s"),
    "A100": Roofline(9.7e12, 19.5e12, 156e12, 312e12, 2.039e12, 108, "ampere_s"),
    "L4": Roofline(0.47e12, 30.3e12, 60e12, 121e12, 0.3e12, 58, "ampere_s"),
    "H100": Roofline(34e12, 67e12, 494e12, 989e12, 3.35e12, 132, "sm90_xmma_"),
    "H200": Roofline(34e12, 67e12, 494e12, 989e12, 4.8e12, 132, "sm90_xmma_"),
    "B200": Roofline(37e12, 75e12, 1100e12, 2250e12, 7.7e12, 148, "sm100_xmma_"),
}


def duration_ns(chip: Roofline, flops: float, bytes_moved: float, dtype: str, *, tensor_cores: bool = False) -> int:
    """Modelled duration of one kernel."""
    compute = flops / (chip.peak(dtype, tensor_cores) * COMPUTE_EFFICIENCY)
    memory = bytes_moved / (chip.bytes_per_s * MEMORY_EFFICIENCY)
    return KERNEL_LATENCY_NS + round(1e9 * max(compute, memory))


def copy_ns(bytes_moved: float) -> int:
    """Modelled duration of a copy between host and device."""
    return KERNEL_LATENCY_NS + round(1e9 * bytes_moved / PCIE_BYTES_PER_S)
