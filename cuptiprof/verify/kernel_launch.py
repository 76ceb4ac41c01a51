"""What a probe launches, and what it must know of the GPU."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from cuptiprof.data.occupancy import ChipLimits

Values = Mapping[str, float]
WARP = 32
SECTOR = 32
"""Bytes of a sector, the unit of all cache and DRAM traffic."""


@dataclass(frozen=True)
class Facts:
    """What the arithmetic needs to know of a GPU.

    Attributes:
        chip: CUPTI's name ("GH100"), which decides what metrics exist.
        name: for people.
        compute: compute capability, (9, 0).
        sms: streaming multiprocessors; l2_bytes: size of the L2 cache; memory_bytes: free device memory.
        limits: what an SM can hold; None for a generation that is not known.
        devices: GPUs that can be used; simulated: the stand-in.
    """

    chip: str
    name: str
    compute: tuple[int, int]
    sms: int
    l2_bytes: int
    memory_bytes: int
    limits: ChipLimits | None
    devices: int = 1
    simulated: bool = False


@dataclass(frozen=True, eq=False)
class Buffer:
    """Zeroed device memory; the same object in two launches is the same memory."""

    bytes: int


@dataclass(frozen=True)
class KernelLaunch:
    """One launch of an embedded kernel, one-dimensional.

    Attributes:
        kernel: its name; grid: blocks; block: threads a block; shared: bytes of dynamic shared memory.
        args: in order; all are 64 bits wide.
        counts: raw counters this launch causes, summed over the GPU; only the simulated device reads them.
        lasts: ns, for kernels that wait; 0: not known.
        active: share of its time that an SM has warps, on average; resident: warps an SM then holds. Both are again
            for the simulated device only; 0: not said.
    """

    kernel: str
    grid: int
    block: int
    args: tuple[Buffer | int, ...] = ()
    shared: int = 0
    counts: Values = field(default_factory=dict)
    lasts: int = 0
    active: float = 0.0
    resident: float = 0.0

    @property
    def threads(self) -> int:
        """Of the whole grid."""
        return self.grid * self.block

    @property
    def warps(self) -> int:
        """Of the whole grid."""
        return self.grid * (-(-self.block // WARP))
