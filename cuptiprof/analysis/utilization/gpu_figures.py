"""What a GPU is, what it could do at most, and how much of it was used."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from cuptiprof.analysis.arrays.aggregate import Int64
from cuptiprof.analysis.arrays.intervals import time_within, union_of
from cuptiprof.analysis.counter_values.launch_sizes import LaunchSizes, launch_sizes
from cuptiprof.analysis.training_steps.step_spans import gpu_steps
from cuptiprof.analysis.utilization.timeline import recorded_span
from cuptiprof.data.chips import BOARDS, Board
from cuptiprof.data.codes import distinct
from cuptiprof.data.coverage import time_unobserved
from cuptiprof.data.result import Result
from cuptiprof.data.tables import Array


@dataclass(frozen=True)
class GpuFigures:
    """Of one GPU.

    Attributes:
        device: ordinal. name, memory (bytes), compute_capability, sms: as the driver says; "", 0 and "" where it was not recorded.
        board: its data sheet; None: it is not in the list. span: without what was not observed (``data/coverage.py``).
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
    sizes = launch_sizes(result)
    described = {ordinal: row for row, ordinal in enumerate(devices["device"].tolist())}
    out = []
    for device in sorted({*described, *distinct(kernels["device"]).tolist()}):
        row = described.get(device)
        facts = devices.row(row) if row is not None else {}
        of = kernels["device"] == device
        mine = slice(None) if of.all() else of
        start, end = (_within(kernels[column][mine], first, last) for column in ("start", "end"))
        config, size = kernels["config"][mine], sizes.get(device)
        blind = int(time_unobserved(result.metadata, np.array([first]), np.array([last]))[0])
        sms = int(facts.get("num_multiprocessors", 0))
        name = str(facts.get("name", ""))
        busy = int(time_within(union_of(start, end), np.array([first]), np.array([last]))[0])
        span = max(last - first - blind, busy)
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
                sm_efficiency=_filled(start, end, config, size) / span if span and size is not None else None,
                occupancy=_occupancy(start, end, config, size) if size is not None else None,
            )
        )
    return out


_AT_ONCE = 1 << 16
"""Kernels swept at a time: what fits into a core's cache."""


def filled_sms(start: Int64, end: Int64, config: Array, size: LaunchSizes) -> Iterator[tuple[Int64, Int64]]:
    """SMs that have a block over time, part by part: the moments at which that changes, ascending, and how many there are from each to
    the next; 0 from the last one of a part on.

    One sweep over all beginnings and ends in order of time, so many kernels at a time; those that still run where the next ones begin go on
    with them.
    """
    # In whole blocks, so that adding and taking away leaves nothing; more than one for each SM is no more than one. What lies outside of the
    # table of configurations fills nothing.
    fills = np.r_[np.minimum(np.rint(size.blocks), size.sms), 0].astype(np.int64)
    order = None if not (start[1:] < start[:-1]).any() else np.argsort(start, kind="stable")
    at, count = 0, len(start)
    on = np.zeros(0, np.int64)  # places in that order of what still runs
    while at < count:
        places = np.r_[on, np.arange(at, min(at + max(_AT_ONCE, len(on)), count))]
        at = int(places[-1]) + 1
        rows = places if order is None else order[places]
        until = int(start[at if order is None else order[at]]) if at < count else int(np.iinfo(np.int64).max)
        begins = start[rows]
        begins[: len(on)] = begins[len(on)]
        ends = np.maximum(end[rows], begins)
        filled = fills[np.minimum(config[rows], len(fills) - 1)]
        time = np.r_[begins, np.minimum(ends, until)]
        sweep = np.argsort(time, kind="stable")
        yield time[sweep], np.minimum(np.cumsum(np.r_[filled, -filled][sweep]), size.sms)
        on = places[ends > until]


def _filled(start: Int64, end: Int64, config: Array, size: LaunchSizes) -> float:
    """Integral over time of min(1, blocks per SM of what runs), ns."""
    parts = filled_sms(start, end, config, size)
    return sum(int((level[:-1] * np.diff(time)).sum()) for time, level in parts) / size.sms


def _occupancy(start: Int64, end: Int64, config: Array, size: LaunchSizes) -> float | None:
    """Mean of the estimated occupancy, weighted by duration; launches of which it is not known are left out."""
    achieved = size.achieved()
    weights = np.bincount(config, end - start, len(achieved))[: len(achieved)]
    counts = np.isfinite(achieved) & (weights > 0)
    return float(np.average(achieved[counts], weights=weights[counts])) if counts.any() else None


def _within(time: Int64, first: int, last: int) -> Int64:
    """Moved into [first, last], where it is not."""
    inside = not len(time) or (int(time.min()) >= first and int(time.max()) <= last)
    return time if inside else np.clip(time, first, last)
