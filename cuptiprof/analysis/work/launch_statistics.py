"""How long launches took: the call on the host, the work on the GPU, and the time between them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cuptiprof.analysis.arrays.aggregate import Int64
from cuptiprof.analysis.work.launch_calls import calls_of
from cuptiprof.analysis.work.stream_work import stream_work
from cuptiprof.data.codes import renumbered
from cuptiprof.data.result import Result

RUNTIME_OUTLIER_NS = 50_000
"""HTA's ``runtime_cutoff``: a call that takes longer is an outlier."""
DELAY_OUTLIER_NS = 100_000
"""HTA's ``launch_delay_cutoff``."""


@dataclass(frozen=True)
class LaunchTimes:
    """Columns of one length, one entry a launch, in the order of the calls.

    Attributes:
        call: row in ``api_calls``.
        device, stream: where its (first) work ran.
        called, cpu: start and duration of the call, ns.
        began, gpu: start of the work, and the time from that to the end of the last piece of it, ns.
        delay: from the end of the call to the start of the work, ns; 0 where the work began before the call returned.
    """

    call: Int64
    device: Int64
    stream: Int64
    called: Int64
    cpu: Int64
    began: Int64
    gpu: Int64
    delay: Int64

    def __len__(self) -> int:
        return len(self.call)

    def summary(self) -> dict[str, int]:
        """How many there are; how many of them ran shorter than the call took, had a call that took long, began late."""
        long = self.cpu > RUNTIME_OUTLIER_NS
        return {
            "launches": len(self),
            "short_kernels": int((~long & (self.gpu < self.cpu)).sum()),
            "runtime_outliers": int(long.sum()),
            "delay_outliers": int((self.delay > DELAY_OUTLIER_NS).sum()),
        }


def launches(result: Result) -> LaunchTimes:
    """Of every asynchronous call that gave a GPU work, if both were recorded: HTA's ``get_cuda_kernel_launch_stats``.

    Those are calls with ``Launch`` or ``Async`` in their names: kernels, graphs, copies and sets, of the runtime and the driver.
    (HTA: ``cudaLaunchKernel``, ``cudaLaunchKernelExC``, ``cudaMemcpyAsync`` and ``cudaMemsetAsync`` only.) A ``cudaMemcpy``
    lasts as long as the copy and is no launch. A graph is one launch, with all its nodes.
    """
    work, api = stream_work(result), result.api_calls
    call = calls_of(api, work.correlation)
    used, which = renumbered(api.codes("name"))
    asynchronous = np.array(["Launch" in api.strings[c] or "Async" in api.strings[c] for c in used.tolist()], bool)
    rows = np.flatnonzero(call >= 0)
    rows = rows[asynchronous[which[call[rows]]]]
    rows = rows[np.argsort(work.start[rows], kind="stable")]
    rows = rows[np.argsort(call[rows], kind="stable")]
    if not len(rows):
        none = np.zeros(0, np.int64)
        return LaunchTimes(none, none, none, none, none, none, none, none)
    call = call[rows]
    first = np.flatnonzero(np.r_[True, call[1:] != call[:-1]])
    ended = np.maximum.reduceat(work.end[rows], first)
    call, rows = call[first], rows[first]
    order = np.argsort(api["start"][call], kind="stable")
    call, rows, ended = call[order], rows[order], ended[order]
    called, returned, began = api["start"][call], np.maximum(api["end"][call], api["start"][call]), work.start[rows]
    return LaunchTimes(
        call=call,
        device=work.device[work.which[rows]],
        stream=work.stream[work.which[rows]],
        called=called,
        cpu=returned - called,
        began=began,
        gpu=ended - began,
        delay=np.maximum(began - returned, 0),
    )
