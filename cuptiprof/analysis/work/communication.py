"""Which kernels talk to other GPUs: their time is that of the slowest partner and of the wire, not theirs."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from cuptiprof import _core
from cuptiprof.data.codes import renumbered
from cuptiprof.data.tables import Table


def communicating(kernels: Table) -> npt.NDArray[np.bool_]:
    """Mask of the kernels of NCCL, NVSHMEM and the like, by their names."""
    used, which = renumbered(kernels.codes("name"))
    verdicts = np.array([_core.communicates(kernels.strings[code]) for code in used.tolist()], bool)
    return verdicts[which] if len(used) else np.zeros(0, bool)
