"""Memory by region: who allocated it, who held it when most was in use, and what was never released."""

from __future__ import annotations

from typing import Any

import numpy as np

from cuptiprof.analysis.allocators.allocations import STAYED, Allocations, allocations
from cuptiprof.analysis.trees.region_tree import NO_REGION
from cuptiprof.analysis.work.counted import device_label, device_labels
from cuptiprof.analysis.work.gpu_work import origin_ns
from cuptiprof.data.enums import MEMORY_KINDS, code_of
from cuptiprof.data.result import Result
from cuptiprof.report.model import Column, Heading, View, left_out, nothing
from cuptiprof.text.units import format_bytes, format_time

_COLUMNS = (
    Column("device", "Device", "label"),
    Column("kind", "Memory", "label"),
    Column("peak_bytes", "At peak", "bytes", min_width=8),
    Column("peak_percent", "Peak(%)", "percent", min_width=7),
    Column("stayed_bytes", "At stop", "bytes", min_width=8),
    Column("stayed", "Blocks", "count", rank=3),
    Column("allocations", "Allocations", "count", rank=2),
    Column("allocated_bytes", "Allocated", "bytes", min_width=8, rank=1),
    Column("device_ordinal", "Device", "count", human=False),
    Column("region", "Region", "text"),
)
_LEGEND = (
    "At peak: held when most of that memory was in use together. At stop: not released when the session ended, in so many blocks.",
    "These are calls of CUDA (cudaMalloc, ...): what a framework's allocator does with its blocks, PyTorch's caching allocator for one, "
    "is not in them.",
)
_OUT_OF_MEMORY = 2  # cudaErrorMemoryAllocation, CUDA_ERROR_OUT_OF_MEMORY
_ALLOCATE = ("cudaMalloc", "cudaHostAlloc", "cuMemAlloc", "cuMemHostAlloc")
_OF_THE_HOST = ("cudaHostAlloc", "cudaMallocHost", "cuMemAllocHost", "cuMemHostAlloc")
_SHOWN_FAILURES, _SHOWN_HOLDERS = 3, 3


def view(result: Result, *, demangle: bool = True, limit: int | None = None) -> View:
    """One row a device, kind of memory and region that allocated some, the largest holders at the peak first."""
    del demangle  # names of regions are not mangled
    memory = result.memory
    found = allocations(memory)
    labels, origin = device_labels(result), origin_ns(result)
    data: dict[str, list[Any]] = {c.key: [] for c in _COLUMNS}
    footers: list[str] = []
    for device, kind, pool in found.pools():
        when, peak = pool.peak()
        name, device_name = MEMORY_KINDS.get(kind, "Unknown"), device_label(labels, device)
        for region in _by_peak(pool, when, limit):
            own = pool.where(pool.region == region)
            held, stayed = own.held_at(when), own.end == STAYED
            at_peak = int(own.size[held].sum())
            data["device"].append(device_name)
            data["device_ordinal"].append(device)
            data["kind"].append(name)
            data["peak_bytes"].append(at_peak)
            data["peak_percent"].append(100.0 * at_peak / peak if peak else 0.0)
            data["stayed_bytes"].append(int(own.size[stayed].sum()))
            data["stayed"].append(int(stayed.sum()))
            data["allocations"].append(len(own))
            data["allocated_bytes"].append(int(own.size.sum()))
            data["region"].append(_name(result, region))
        every = len(np.unique(pool.region))
        footers += left_out(every, min(every, every if limit is None else limit), f"regions with {name} memory")
        footers.append(
            f"{device_name}, {name}: most in use {format_bytes(peak)}, at {format_time(when - origin)}; "
            f"{format_bytes(int(pool.size[pool.end == STAYED].sum()))} not released."
        )
    if found.unseen_releases:
        footers.append(f"{found.unseen_releases:,} releases of memory that was allocated before the session.")
    footers += _failures(result, found, origin)
    return View(
        columns=_COLUMNS,
        data=data,
        footers=(*footers, *(_LEGEND if len(found) else ())),
        headings=(Heading("device"), Heading("kind", "{} memory")),
        notes={"": nothing('allocations (activities=["memory", ...])', 0)},
        facts={"origin_ns": origin},
    )


def _name(result: Result, region: int) -> str:
    return result.memory.strings[region] or NO_REGION


def _by_peak(pool: Allocations, when: int, limit: int | None) -> list[int]:
    """Regions, those that held most at that moment first, then those that allocated most."""
    regions, of = np.unique(pool.region, return_inverse=True)
    held = np.bincount(of, weights=pool.size * pool.held_at(when), minlength=len(regions))
    allocated = np.bincount(of, weights=pool.size, minlength=len(regions))
    return [int(regions[i]) for i in np.lexsort((-allocated, -held))[:limit]]


def _failures(result: Result, found: Allocations, origin: int) -> list[str]:
    """Allocations that CUDA refused for want of memory, and who held it then."""
    calls = result.api_calls
    refused = np.flatnonzero(calls["return_value"] == _OUT_OF_MEMORY)
    rows = [i for i in refused.tolist() if calls.strings[int(calls.codes("name")[i])].startswith(_ALLOCATE)]
    out = []
    for i in rows[:_SHOWN_FAILURES]:
        row = calls.row(i)
        pinned = found.kind == code_of(MEMORY_KINDS, "Pinned")
        same = pinned if row["name"].startswith(_OF_THE_HOST) else ~pinned
        held = found.where(found.held_at(row["start"]) & same)
        regions = _by_peak(held, row["start"], _SHOWN_HOLDERS)
        holders = [f"{_name(result, r)} {format_bytes(int(held.size[held.region == r].sum()))}" for r in regions]
        where = f" in {row['region']}" if row["region"] else ""
        out.append(
            f"{row['name']}{where} found no memory at {format_time(row['start'] - origin)}: "
            f"{format_bytes(int(held.size.sum()))} were held{': ' if holders else ''}{', '.join(holders)}."
        )
    if len(rows) > _SHOWN_FAILURES:
        out.append(f"... and {len(rows) - _SHOWN_FAILURES} more allocations that found no memory")
    return out
