"""PyTorch's caching allocator: who held memory at the peak, who allocated how much, by region, module and operator."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from cuptiprof.analysis.allocators import allocator_memory as memory
from cuptiprof.analysis.work.counted import device_label, device_labels
from cuptiprof.analysis.work.gpu_work import origin_ns
from cuptiprof.data.result import Result
from cuptiprof.report.model import Column, Heading, View, left_out, nothing
from cuptiprof.text.units import format_bytes, format_percent, format_time

_COLUMNS = (
    Column("device", "Device", "label"),
    Column("by", "By", "label"),
    Column("at_peak_bytes", "At peak", "bytes", min_width=8),
    Column("peak_percent", "Peak(%)", "percent", min_width=7, rank=4),
    Column("total_increase_bytes", "Size Increase", "bytes", min_width=13),
    Column("self_increase_bytes", "Self Size Increase", "bytes", min_width=18, rank=2),
    Column("total_allocated_bytes", "Allocation Size", "bytes", min_width=15),
    Column("self_allocated_bytes", "Self Allocation Size", "bytes", min_width=20, rank=3),
    Column("allocations", "Allocations", "count", rank=1),
    Column("device_ordinal", "Device", "count", human=False),
    Column("name", "Name", "text"),
)
_LEGEND = (
    "At peak: allocated in the session and held when most was in use. Size Increase: allocated less released; Allocation Size: allocated. "
    "Self: not by what is below. Sizes are those asked for, before the allocator rounds them.",
)
_UNATTRIBUTED = 'Events are joined to regions and operators by time, and only where that is certain: sources=["operators"] makes more of them so.'
_SHOWN = 3
_WAYS = (
    ("region", memory.memory_by_region),
    ("module", memory.memory_by_module),
    ("operator", memory.memory_by_operator),
)


def view(result: Result, *, demangle: bool = True, limit: int | None = None) -> View:
    """Three blocks a device, one row a region, module or operator; those that held most at the peak first."""
    del demangle  # neither names of regions nor of operators are mangled
    labels, origin = device_labels(result), _origin(result)
    data: dict[str, list[Any]] = {c.key: [] for c in _COLUMNS}
    footers: list[str] = []
    ordinals = memory.devices(result)
    for ordinal in ordinals:
        label = device_label(labels, ordinal)
        timeline = memory.memory_timeline(result, ordinal)
        peak, at = timeline.peak()
        for by, of in _WAYS:
            use = of(result, ordinal)
            if by != "region" and not len(result.operators):
                continue
            footers += _rows(data, use, (label, ordinal, f"by {by}"), peak, limit)
        footers += _about(result, timeline, label, peak, at, origin)
    if ordinals:
        footers += _LEGEND
    if memory.UNATTRIBUTED in data["name"]:
        footers.append(_UNATTRIBUTED)
    return View(
        columns=_COLUMNS,
        data=data,
        footers=tuple(footers),
        headings=(Heading("device"), Heading("by")),
        notes={"": nothing('events of PyTorch\'s caching allocator (activities=["allocator", ...])', 0)},
        facts={"origin_ns": origin},
    )


def _origin(result: Result) -> int:
    """As other views count from, or the first event where that was earlier."""
    first = result.allocator_events["timestamp"][:1].tolist()
    origin = origin_ns(result)
    return min([*([origin] if origin else []), *first], default=0)


def _rows(
    data: dict[str, list[Any]], use: memory.MemoryUse, place: tuple[str, int, str], peak: int, limit: int | None
) -> list[str]:
    order = np.lexsort((-use.self_allocated, -use.total_allocated, -use.at_peak))[:limit].tolist()
    for i in order:
        for key, value in zip(("device", "device_ordinal", "by"), place, strict=True):
            data[key].append(value)
        data["name"].append(use.names[i])
        data["at_peak_bytes"].append(int(use.at_peak[i]))
        data["peak_percent"].append(100.0 * int(use.at_peak[i]) / peak if peak else 0.0)
        data["total_increase_bytes"].append(int(use.total_increase[i]))
        data["self_increase_bytes"].append(int(use.self_increase[i]))
        data["total_allocated_bytes"].append(int(use.total_allocated[i]))
        data["self_allocated_bytes"].append(int(use.self_allocated[i]))
        data["allocations"].append(int(use.allocations[i]))
    return list(left_out(len(use), len(order), f"rows {place[2]}"))


def _about(result: Result, timeline: memory.MemoryTimeline, label: str, peak: int, at: int, origin: int) -> list[str]:
    reserved = int(timeline.reserved[at]) if at >= 0 else timeline.before[1]
    when = f"at {format_time(int(timeline.time[at]) - origin)}" if at >= 0 else "at the start"
    out = [f"{label}: most allocated {format_bytes(peak)}, {when}, of {format_bytes(reserved)} reserved; "
           f"{format_bytes(timeline.before[0])} were allocated before the session."]  # fmt: skip
    left = memory.fragmentation(result, timeline.device)
    out.append(
        f"{label}, at stop: {format_bytes(left.reserved)} reserved, {format_bytes(left.allocated)} allocated "
        f"({format_percent(100 * left.internal)} of it by rounding), {format_bytes(left.free)} free, "
        f"{format_percent(100 * left.external)} of that outside of the largest piece ({format_bytes(left.largest_free)})."
    )
    failures = memory.out_of_memory(result, timeline.device)
    for failure in failures[:_SHOWN]:
        out.append(_failure(result, failure, origin))
    if len(failures) > _SHOWN:
        out.append(f"... and {len(failures) - _SHOWN} more allocations that found no memory")
    return out


def _failure(result: Result, failure: memory.OutOfMemory, origin: int) -> str:
    events = result.allocator_events
    held: Counter[str] = Counter()
    regions, sizes = events["region"][failure.held], events["bytes"][failure.held]
    for region, size in zip(regions.tolist(), sizes.tolist(), strict=True):
        held[region or memory.UNATTRIBUTED] += size
    if failure.earlier > 0:
        held[memory.EARLIER] = failure.earlier
    holders = ", ".join(f"{name} {format_bytes(size)}" for name, size in held.most_common(_SHOWN))
    row = events.row(failure.row)
    where = "".join(f" in {row[key]}" for key in ("region", "operator") if row[key])
    line = f", {row['line']}" if row["line"] else ""
    return (
        f"Out of memory at {format_time(failure.time - origin)}{where}{line}: {format_bytes(failure.asked)} were asked for, CUDA had "
        f"{format_bytes(failure.device_free)}; {format_bytes(failure.allocated)} were allocated, "
        f"{format_bytes(failure.reserved)} reserved{': ' if holders else ''}{holders}."
    )
