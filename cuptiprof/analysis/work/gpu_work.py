"""GPU work of all kinds: what kernels, copies, sets and whole-graph launches are called, and their durations by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from cuptiprof.analysis.arrays.aggregate import group_stats
from cuptiprof.data import enums
from cuptiprof.data.codes import distinct_rows, renumbered
from cuptiprof.data.result import Result
from cuptiprof.data.tables import Array, Table
from cuptiprof.text.names import display_name


@dataclass(frozen=True)
class NameIds:
    """A column of names as integers, and what they stand for."""

    ids: Array
    names: Sequence[str]


def kernel_names(table: Table, demangle: bool, rows: Array | slice = slice(None)) -> NameIds:
    """Display names of a table's ``name`` column; kernels that are shown alike get the same id."""
    used, which = renumbered(table.codes("name")[rows])
    names: dict[str, int] = {}
    ids = [names.setdefault(display_name(table.strings[code], demangle), len(names)) for code in used.tolist()]
    return NameIds(np.asarray(ids, np.uint32)[which], list(names))


def memcpy_names(table: Table, rows: Array | slice = slice(None)) -> NameIds:
    """``[CUDA memcpy HtoD]`` and so on."""
    used, which = renumbered(table["copy_kind"][rows])
    return NameIds(which, [_memcpy_name(kind) for kind in used.tolist()])


def _memcpy_name(kind: int) -> str:
    return f"[CUDA memcpy {enums.MEMCPY_KINDS.get(kind, 'Unknown')}]"


def named_work(result: Result, demangle: bool = True) -> Iterator[tuple[NameIds, Table]]:
    """Kernels, copies and sets by the names that Kineto gives them: ``Memcpy HtoD (Pinned -> Device)``, ``Memset (Device)``."""
    kernels, memcpys, memsets = (result.tables[name] for name in ("kernels", "memcpys", "memsets"))
    yield kernel_names(kernels, demangle), kernels
    kinds, which = distinct_rows(memcpys["copy_kind"], memcpys["src_kind"], memcpys["dst_kind"])
    words = [(enums.MEMCPY_KINDS.get(kind), *map(enums.MEMORY_KINDS.get, ends)) for kind, *ends in kinds.tolist()]
    yield (
        NameIds(which, ["Memcpy {} ({} -> {})".format(*(word or "Unknown" for word in row)) for row in words]),
        memcpys,
    )
    places, which = distinct_rows(memsets["memory_kind"])
    yield (
        NameIds(which, [f"Memset ({enums.MEMORY_KINDS.get(kind, 'Unknown')})" for (kind,) in places.tolist()]),
        memsets,
    )


def bandwidths(table: Table, rows: Array | slice) -> Array:
    """GB/s (bytes a ns) of copies or sets: what the imported file says, else bytes by time; NaN for those that take none."""
    given, size = table["bandwidth"][rows], table["bytes"][rows].astype(np.float64)
    duration = table["end"][rows] - table["start"][rows]
    computed = np.divide(size, duration, out=np.full(len(size), np.nan), where=duration > 0)
    return np.where(given > 0, given, computed)


def traced_graphs(result: Result) -> Array:
    """Mask of the graph launches whose nodes were not recorded one by one (counting both would count twice)."""
    launches = result.tables["graph_launches"]
    if not len(launches):
        return np.zeros(0, bool)
    seen = np.concatenate([result.tables[name]["correlation_id"] for name in ("kernels", "memcpys", "memsets")])
    mask: Array = ~np.isin(launches["correlation_id"], seen)
    return mask


@dataclass
class Times:
    """Of all pieces of work of one name: how many, and their durations in ns."""

    count: int
    total: int
    minimum: int
    maximum: int

    def add(self, other: Times) -> None:
        self.count += other.count
        self.total += other.total
        self.minimum = min(self.minimum, other.minimum)
        self.maximum = max(self.maximum, other.maximum)


def gpu_times(result: Result, demangle: bool, per_gpu: bool = False) -> dict[int, dict[str, Times]]:
    """Durations of kernels, copies, sets and whole-graph launches by display name, for each GPU, or all under 0."""
    kernels, memcpys, memsets = (result.tables[name] for name in ("kernels", "memcpys", "memsets"))
    graphs = result.tables["graph_launches"].where(traced_graphs(result))
    strings = kernels.strings
    out: dict[int, dict[str, Times]] = {}
    _add_times(out, kernels, kernels.codes("name"), lambda code: display_name(strings[code], demangle), per_gpu)
    _add_times(out, memcpys, memcpys["copy_kind"], _memcpy_name, per_gpu)
    _add_times(out, memsets, np.zeros(len(memsets), np.uint8), lambda code: "[CUDA memset]", per_gpu)
    _add_times(out, graphs, np.zeros(len(graphs), np.uint8), lambda code: "[CUDA graph]", per_gpu)
    return dict(sorted(out.items()))


def times_by_code(table: Table, codes: Array, name_of: Callable[[int], str]) -> dict[str, Times]:
    """Durations of a table's rows by the names of their codes."""
    out: dict[int, dict[str, Times]] = {}
    _add_times(out, table, codes, name_of, False)
    return out.get(0, {})


def _add_times(
    out: dict[int, dict[str, Times]], table: Table, codes: Array, name_of: Callable[[int], str], per_gpu: bool
) -> None:
    if not len(table):
        return
    kinds = int(codes.max()) + 1
    key = table["device"].astype(np.int64) * kinds + codes if per_gpu else codes
    stats = group_stats(key, table["end"], table["start"])
    columns = (stats.key, stats.count, stats.total, stats.minimum, stats.maximum)
    for at, count, total, minimum, maximum in zip(*(column.tolist() for column in columns), strict=True):
        device, code = divmod(at, kinds)
        times = Times(count, total, minimum, maximum)
        found = out.setdefault(device, {}).setdefault(name_of(code), times)
        if found is not times:
            found.add(times)


def origin_ns(result: Result) -> int:
    """What instants of both traces are relative to: the first GPU activity or API call."""
    first = [
        int(t["start"].min()) for n in ("kernels", "memcpys", "memsets", "api_calls") if len(t := result.tables[n])
    ]
    return min(first, default=0)
