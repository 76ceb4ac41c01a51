"""GPU work of all kinds as one set of columns: kernels, copies, sets and whole-graph launches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cuptiprof.analysis.aggregate import Int64
from cuptiprof.data import enums
from cuptiprof.data.result import Result
from cuptiprof.data.tables import Array, Table
from cuptiprof.text.names import display_name


@dataclass(frozen=True)
class NameIds:
    """A column of names as integers, and what they stand for."""

    ids: Int64
    names: Sequence[str]


def kernel_names(table: Table, demangle: bool) -> NameIds:
    """Display names of a table's ``name`` column; kernels that are shown alike get the same id."""
    codes = table.codes("name")
    used, inverse = np.unique(codes, return_inverse=True)
    names: dict[str, int] = {}
    ids = [names.setdefault(display_name(table.strings[int(code)], demangle), len(names)) for code in used]
    return NameIds(np.asarray(ids, np.int64)[inverse.reshape(-1)], list(names))


def memcpy_names(table: Table) -> NameIds:
    """``[CUDA memcpy HtoD]`` and so on."""
    used, inverse = np.unique(table["copy_kind"], return_inverse=True)
    names = [f"[CUDA memcpy {enums.MEMCPY_KINDS.get(int(kind), 'Unknown')}]" for kind in used]
    return NameIds(inverse.reshape(-1).astype(np.int64), names)


def bandwidths(table: Table, rows: Array | slice) -> Array:
    """GB/s (bytes a ns) of copies or sets: what the imported file says, else bytes by time; NaN for those that take none."""
    given, size = table["bandwidth"][rows], table["bytes"][rows].astype(np.float64)
    duration = table["end"][rows] - table["start"][rows]
    computed = np.divide(size, duration, out=np.full(len(size), np.nan), where=duration > 0)
    return np.where(given > 0, given, computed)


@dataclass(frozen=True)
class GpuWork:
    """All GPU work of a run: kernels first, then copies, sets and graphs. Times in ns."""

    start: Int64
    end: Int64
    device: Int64
    name: NameIds


def traced_graphs(result: Result) -> Array:
    """Mask of the graph launches whose nodes were not recorded one by one (counting both would count twice)."""
    launches = result.tables["graph_launches"]
    if not len(launches):
        return np.zeros(0, bool)
    seen = np.concatenate([result.tables[name]["correlation_id"] for name in ("kernels", "memcpys", "memsets")])
    mask: Array = ~np.isin(launches["correlation_id"], seen)
    return mask


def gpu_work(result: Result, demangle: bool) -> GpuWork:
    kernels, memcpys, memsets = (result.tables[name] for name in ("kernels", "memcpys", "memsets"))
    graphs = result.tables["graph_launches"].where(traced_graphs(result))
    tables = (kernels, memcpys, memsets, graphs)
    parts = (
        kernel_names(kernels, demangle),
        memcpy_names(memcpys),
        NameIds(np.zeros(len(memsets), np.int64), ["[CUDA memset]"]),
        NameIds(np.zeros(len(graphs), np.int64), ["[CUDA graph]"]),
    )
    names: list[str] = []
    ids = []
    for part in parts:
        ids.append(part.ids + len(names))
        names.extend(part.names)
    start, end, device = (
        np.concatenate([table[column] for table in tables]).astype(np.int64) for column in ("start", "end", "device")
    )
    return GpuWork(start, end, device, NameIds(np.concatenate(ids), names))


def origin_ns(result: Result) -> int:
    """What instants of both traces are relative to: the first GPU activity or API call."""
    first = [
        int(t["start"].min()) for n in ("kernels", "memcpys", "memsets", "api_calls") if len(t := result.tables[n])
    ]
    return min(first, default=0)
