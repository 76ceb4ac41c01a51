"""What a session finds in a program that uses CUDA already, and what CUPTI's settings and clock do there."""

from __future__ import annotations

from typing import Any

import cuptiprof
from benchmarks.gpu_work import Work
from cuptiprof import _core


def rows_after_late_attach(work: Work) -> dict[str, Any]:
    """Are devices, contexts and streams that were there before the session dumped when their kinds are switched on?

    Assumed: one row each, and max_ipc of a device (which the driver does not tell) is not 0.
    """
    work.small(1)
    work.synchronize()
    with cuptiprof.profile(device=work.device) as prof:
        work.small(1)
        prof.pause()
        prof.resume()
        work.small(1)
    r = prof.result()
    devices = r.devices
    return {
        "cuda_was_up": r.metadata["cuda_was_up"],
        "devices": [
            {c: devices[c][i] for c in ("device", "name", "num_multiprocessors", "max_ipc", "global_memory_bandwidth")}
            for i in range(len(devices))
        ],
        "contexts": r.contexts["context"].tolist(),
        "streams": r.streams["stream"].tolist(),
        "streams_of_kernels": sorted(set(r.kernels["stream"].tolist())),
    }


def clock_of_later_sessions(work: Work) -> dict[str, Any]:
    """Does cuptiGetTimestamp show the clock that was registered, so that later sessions need not register it again?

    Assumed: yes, and no record of ten sessions has a time outside of it.
    """
    losses, outside = [], []
    for _ in range(10):
        with cuptiprof.profile(device=work.device) as prof:
            begin = _core.now_ns()
            work.small(5)
            work.synchronize()
            end = _core.now_ns()
        k = prof.result().timed().kernels
        losses.append(prof.result().losses["invalid_timestamps"])
        outside.append(int(((k["start"] < begin) | (k["end"] > end)).sum()))
    return {"invalid_timestamps": losses, "kernels outside of their calls": outside}


def late_latency_timestamps(work: Work) -> dict[str, Any]:
    """Are kernels.queued and submitted filled when latency timestamps are switched on after CUDA was initialised?

    Assumed: unknown; the result has a note.
    """
    work.small(1)
    work.synchronize()
    with cuptiprof.profile(device=work.device, latency_timestamps=True) as prof:
        work.small(10)
    k = prof.result().kernels
    return {"kernels": len(k), "queued": int((k["queued"] != 0).sum()), "submitted": int((k["submitted"] != 0).sum())}


PROBES = [rows_after_late_attach, clock_of_later_sessions, late_latency_timestamps]
