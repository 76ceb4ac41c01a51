"""On which GPU a context is."""

from __future__ import annotations

import numpy as np

from cuptiprof.analysis.arrays.aggregate import Int64
from cuptiprof.data.codes import distinct_rows
from cuptiprof.data.result import Result
from cuptiprof.data.tables import Array


class ContextDevices:
    """Called with contexts: the device of each, 0 for one that was never seen."""

    def __init__(self, result: Result) -> None:
        devices: dict[int, int] = {}
        for name in ("kernels", "memcpys", "memsets", "contexts"):
            table = result.tables[name]
            pairs, _ = distinct_rows(table["context"], table["device"])
            devices.update(dict(pairs.tolist()))
        known = np.array(sorted(devices.items()), np.int64).reshape(-1, 2)
        self._context, self._device = known[:, 0], known[:, 1]

    def __call__(self, context: Array) -> Int64:
        if not len(self._context):
            return np.zeros(len(context), np.int64)
        at = np.minimum(np.searchsorted(self._context, context), len(self._context) - 1)
        return np.where(self._context[at] == context, self._device[at], 0)
