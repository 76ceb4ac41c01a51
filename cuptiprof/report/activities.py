"""GPU work of all kinds as one set of columns: kernels, copies, sets and whole-graph launches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from cuptiprof.enums import MEMCPY_KINDS, word
from cuptiprof.report.aggregate import AnyArray, Int64
from cuptiprof.report.names import display_name

if TYPE_CHECKING:
    from cuptiprof.result import Result, Table


@dataclass(frozen=True)
class NameIds:
    """A column of names as integers, and what they stand for."""

    ids: Int64
    names: list[str]


def kernel_names(table: Table, demangling: bool) -> NameIds:
    """Display names of a table's ``name`` column; kernels that are shown alike get the same id."""
    codes = table.codes("name")
    used, inverse = np.unique(codes, return_inverse=True)
    names: dict[str, int] = {}
    ids = [names.setdefault(display_name(table.strings[int(code)], demangling), len(names)) for code in used]
    return NameIds(np.asarray(ids, np.int64)[inverse.reshape(-1)], list(names))


def memcpy_names(table: Table) -> NameIds:
    """``[CUDA memcpy HtoD]`` and so on."""
    used, inverse = np.unique(table["copy_kind"], return_inverse=True)
    names = [f"[CUDA memcpy {word(MEMCPY_KINDS, int(kind))}]" for kind in used]
    return NameIds(inverse.reshape(-1).astype(np.int64), names)


@dataclass(frozen=True)
class GpuWork:
    """All GPU work of a run: kernels first, then copies, sets and graphs. Times in ns."""

    start: Int64
    end: Int64
    device: Int64
    name: NameIds


def traced_graphs(result: Result) -> AnyArray:
    """Mask of the graph launches whose nodes were not recorded one by one (counting both would count twice)."""
    launches = result.tables["graph_launches"]
    if not len(launches):
        return np.zeros(0, bool)
    seen = np.concatenate(
        [result.tables[name]["correlation_id"] for name in ("kernels", "memcpys", "memsets")]
    )
    mask: AnyArray = ~np.isin(launches["correlation_id"], seen)
    return mask


def gpu_work(result: Result, demangling: bool) -> GpuWork:
    kernels, memcpys, memsets = (result.tables[name] for name in ("kernels", "memcpys", "memsets"))
    graphs = result.tables["graph_launches"].where(traced_graphs(result))
    tables = (kernels, memcpys, memsets, graphs)
    parts = (
        kernel_names(kernels, demangling),
        memcpy_names(memcpys),
        NameIds(np.zeros(len(memsets), np.int64), ["[CUDA memset]"]),
        NameIds(np.zeros(len(graphs), np.int64), ["[CUDA graph]"]),
    )
    names: list[str] = []
    ids = []
    for part in parts:
        ids.append(part.ids + len(names))
        names += part.names
    return GpuWork(
        *(
            np.concatenate([table[column] for table in tables]).astype(np.int64)
            for column in ("start", "end", "device")
        ),
        NameIds(np.concatenate(ids), names),
    )


def origin_ns(result: Result) -> int:
    """What instants are shown relative to: the start of the run, or its first event if that is not known.

    The recorded start is used only if it lies before the first event by less than a day: an imported trace may count
    from elsewhere.
    """
    first = [
        int(table["start"].min())
        for name in ("kernels", "memcpys", "memsets", "api_calls", "regions")
        if len(table := result.tables[name])
    ]
    started = int(result.metadata.get("start_time_ns") or 0)
    if not first:
        return started
    return started if 0 <= min(first) - started < 86_400 * 10**9 else min(first)
