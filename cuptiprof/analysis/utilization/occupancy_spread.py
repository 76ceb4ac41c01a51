"""How occupancy is spread over kernels, launches and their time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cuptiprof.analysis.arrays.aggregate import Int64
from cuptiprof.analysis.counter_values.launch_sizes import estimated_occupancy
from cuptiprof.analysis.work.kernel_figures import kernel_figures
from cuptiprof.data.result import Result

WIDTH = 5
"""of a bin, percent"""


@dataclass(frozen=True)
class OccupancySpread:
    """One entry a bin of 5 %, the last with 100 %.

    Attributes:
        low: where it begins, percent.
        kernels: names of kernels whose mean by time lies in it. launches: launches in it. time: their durations, ns.
        unknown: launches of which the occupancy is not known.
    """

    low: Int64
    kernels: Int64
    launches: Int64
    time: Int64
    unknown: int


def occupancy_spread(result: Result) -> OccupancySpread | None:
    """Of estimated occupancy (``launch_sizes.estimated_occupancy``), all GPUs together; None where none is known."""
    occupancy = estimated_occupancy(result)
    known = np.isfinite(occupancy)
    if not known.any():
        return None
    lasted = (result.kernels["end"] - result.kernels["start"])[known]
    bins = 100 // WIDTH
    of_launch = _bin(occupancy[known])
    by_name = kernel_figures(result).occupancy
    time = np.zeros(bins, np.int64)
    np.add.at(time, of_launch, lasted)
    return OccupancySpread(
        low=np.arange(bins) * WIDTH,
        kernels=np.bincount(_bin(by_name[np.isfinite(by_name)]), minlength=bins).astype(np.int64),
        launches=np.bincount(of_launch, minlength=bins).astype(np.int64),
        time=time,
        unknown=int((~known).sum()),
    )


def _bin(percent: np.typing.NDArray[np.float64]) -> Int64:
    return np.clip(percent // WIDTH, 0, 100 // WIDTH - 1).astype(np.int64)
