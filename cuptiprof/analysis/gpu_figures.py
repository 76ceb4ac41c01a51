"""What a GPU is, what it could do at most, and how much of it was used."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cuptiprof.analysis.aggregate import Int64
from cuptiprof.analysis.intervals import time_within, union_of
from cuptiprof.analysis.kernel_counters import Float64
from cuptiprof.analysis.launch_sizes import blocks_per_sm, estimated_occupancy
from cuptiprof.analysis.step_spans import gpu_steps
from cuptiprof.analysis.timeline import recorded_span
from cuptiprof.data.chips import BOARDS, Board
from cuptiprof.data.result import Result


@dataclass(frozen=True)
class GpuFigures:
    """Of one GPU.

    Attributes:
        device: ordinal. name, memory (bytes), compute_capability, sms: as the driver says; "", 0 and "" where it was not recorded.
        board: its data sheet; None: it is not in the list.
        utilisation: share of ``span`` (ns) in which any kernel ran, 0..1; copies are none.
        sm_efficiency: share of the SMs that kernels could fill at a time, over ``span``, 0..1; None: the SMs are not known.
        occupancy: estimated occupancy, percent, weighted by the time of each kernel in the span; None: the chip is not known.
    """

    device: int
    name: str
    memory: int
    compute_capability: str
    sms: int
    board: Board | None
    span: int
    utilisation: float | None
    sm_efficiency: float | None
    occupancy: float | None


def gpu_figures(result: Result) -> list[GpuFigures]:
    """Of each GPU that was described or ran a kernel: the GPU summary of TensorBoard's plugin for torch.profiler.

    The time that counts goes from the start of the first step to the end of the last (``step_spans.gpu_steps``), without
    steps and calls it is all that was recorded. Utilisation is the union of all kernels in it. SM efficiency is the integral of
    min(1, sum of blocks per SM of the kernels that run).
    """
    kernels, devices = result.kernels, result.devices
    steps = gpu_steps(result)
    first, last = (int(steps.start[0]), int(steps.end[-1])) if len(steps) else recorded_span(result) or (0, 0)
    blocks, percent = blocks_per_sm(result), estimated_occupancy(result)
    described = {ordinal: row for row, ordinal in enumerate(devices["device"].tolist())}
    out = []
    for device in sorted({*described, *np.unique(kernels["device"]).tolist()}):
        row = described.get(device)
        facts = devices.row(row) if row is not None else {}
        mine = kernels["device"] == device
        start, end = np.clip(kernels["start"][mine], first, last), np.clip(kernels["end"][mine], first, last)
        span, sms = last - first, int(facts.get("num_multiprocessors", 0))
        name = str(facts.get("name", ""))
        busy = int(time_within(union_of(start, end), np.array([first]), np.array([last]))[0])
        out.append(
            GpuFigures(
                device=device,
                name=name,
                memory=int(facts.get("global_memory_size", 0)),
                compute_capability=f"{facts['compute_capability_major']}.{facts['compute_capability_minor']}"
                if facts
                else "",
                sms=sms,
                board=next((board for board in BOARDS.values() if name and board.product == name), None),
                span=span,
                utilisation=busy / span if span else None,
                sm_efficiency=_filled(start, end, blocks[mine], sms) / span if span and sms else None,
                occupancy=_weighted(percent[mine], end - start),
            )
        )
    return out


def filled_sms(start: Int64, end: Int64, blocks: Float64, sms: int) -> tuple[Int64, Int64]:
    """SMs that have a block over time: the moments at which that changes, ascending, and how many there are from each to the next."""
    runs = (end > start) & np.isfinite(blocks)
    # In whole blocks, so that adding and taking away leaves nothing; more than one for each SM is no more than one.
    filled = np.minimum(np.rint(blocks[runs] * sms), sms).astype(np.int64)
    time = np.concatenate([start[runs], end[runs]])
    order = np.argsort(time, kind="stable")
    running = np.cumsum(np.concatenate([filled, -filled])[order])
    return time[order], np.minimum(running, sms)


def _filled(start: Int64, end: Int64, blocks: Float64, sms: int) -> float:
    """Integral over time of min(1, blocks per SM of what runs), ns."""
    time, running = filled_sms(start, end, blocks, sms)
    return float((running[:-1] * np.diff(time)).sum() / sms) if len(time) else 0.0


def _weighted(percent: Float64, lasted: Int64) -> float | None:
    counts = np.isfinite(percent) & (lasted > 0)
    return float(np.average(percent[counts], weights=lasted[counts])) if counts.any() else None
