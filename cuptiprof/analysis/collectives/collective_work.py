"""Communication between ranks: which kernels a call of torch.distributed led to, and how fast the bytes went.

Bandwidths are those of nccl-tests (https://github.com/NVIDIA/nccl-tests/blob/master/doc/PERFORMANCE.md): algorithm bandwidth S / t, bus
bandwidth that by a factor for what every rank must send, so that it can be held against the hardware's, whatever the number of ranks.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cuptiprof.analysis.counter_values.kernel_counters import match
from cuptiprof.analysis.work.communication import communicating
from cuptiprof.data.result import Result
from cuptiprof.data.tables import Table

Int64 = npt.NDArray[np.int64]

_SUM_AND_SPREAD = ("all_reduce", "allreduce", "allreduce_", "allreduce_coalesced", "allreduce_coalesced_")
_OF_THE_OUTPUT = (
    "all_gather", "all_gather_into_tensor", "all_gather_single", "allgather", "allgather_", "_allgather_base", "_allgather_base_",
    "all_gather_into_tensor_coalesced", "allgather_into_tensor_coalesced", "allgather_into_tensor_coalesced_",
    "allgather_coalesced_",
)  # fmt: skip
_OF_THE_INPUT = (
    "reduce_scatter", "reduce_scatter_", "reduce_scatter_tensor", "reduce_scatter_single", "_reduce_scatter_base",
    "_reduce_scatter_base_", "reduce_scatter_tensor_coalesced", "reduce_scatter_tensor_coalesced_",
    "all_to_all", "all_to_all_single", "all_to_allv", "alltoall", "alltoall_", "alltoall_base", "alltoall_base_",
)  # fmt: skip


def kernels_of_collectives(collectives: Table, kernels: Table, api_calls: Table) -> npt.NDArray[np.uint32]:
    """``collectives.instance`` of each kernel, shape (kernels,); 0: of none.

    A communicating kernel is that call's inside which its launch was made, on the same thread: by the record of the launching call, which has the kernel's correlation ID.
    """
    out = np.zeros(len(kernels), np.uint32)
    rows = np.flatnonzero(communicating(kernels))
    if not len(collectives) or not len(rows) or not len(api_calls):
        return out
    by_correlation = np.argsort(api_calls["correlation_id"], kind="stable")
    sorted_ids = api_calls["correlation_id"][by_correlation]
    at = np.searchsorted(sorted_ids, kernels["correlation_id"][rows]).clip(max=len(sorted_ids) - 1)
    has_call = sorted_ids[at] == kernels["correlation_id"][rows]
    rows, call = rows[has_call], by_correlation[at[has_call]]
    start, thread = api_calls["start"][call], api_calls["thread"][call]
    for each in np.unique(thread).tolist():
        mine = np.flatnonzero(collectives["thread"] == each)
        if not len(mine):
            continue
        order = mine[np.argsort(collectives["start"][mine], kind="stable")]
        launched = np.flatnonzero(thread == each)
        last = np.searchsorted(collectives["start"][order], start[launched], side="right") - 1
        inside = (last >= 0) & (start[launched] <= collectives["end"][order[last]])
        out[rows[launched[inside]]] = collectives["instance"][order[last[inside]]]
    return out


@dataclass(frozen=True)
class CollectiveSums:
    """Calls that do the same, one value a kind of call.

    Attributes:
        first: row in ``collectives`` of one of them.
        calls: how many.
        host_ns: time in the calls, summed.
        gpu_calls: how many have kernels.
        gpu_ns: from the start of a call's first kernel to the end of its last, summed.
        paired_calls: how many have kernels of which partners on other ranks are known.
        transfer_ns: time in which the data of these moved (``communication_waits``), summed.
    """

    first: Int64
    calls: Int64
    host_ns: Int64
    gpu_calls: Int64
    gpu_ns: Int64
    paired_calls: Int64
    transfer_ns: Int64

    def __len__(self) -> int:
        return len(self.first)


_SAME = ("group", "name", "dtype", "in_bytes", "out_bytes", "group_size")


def collective_sums(result: Result, partners: tuple[Table, Int64] | None = None) -> CollectiveSums:
    """By group, name, dtype, bytes and number of ranks, in order of their first calls. `partners`: of this rank, from ``shortest_partners``."""
    table = result.collectives
    keys = (
        np.stack([table.codes(c).astype(np.int64) for c in _SAME])
        if len(table)
        else np.zeros((len(_SAME), 0), np.int64)
    )
    _, first, of = np.unique(keys, axis=1, return_index=True, return_inverse=True)
    of = of.reshape(-1)
    begin, end = _spans(result)
    has = end > 0
    duration = np.where(has, end - begin, 0)
    moved = _transfer(table, *partners) if partners else np.full(len(table), -1, np.int64)
    order = np.argsort(first)

    def sums(values: Int64) -> Int64:
        out = np.zeros(len(first), np.int64)
        np.add.at(out, of, values)
        return out[order]

    return CollectiveSums(
        first[order],
        sums(np.ones(len(table), np.int64)),
        sums(table["end"] - table["start"]),
        sums(has.astype(np.int64)),
        sums(duration),
        sums((moved >= 0).astype(np.int64)),
        sums(np.maximum(moved, 0)),
    )


def _transfer(table: Table, kernels: Table, shortest: Int64) -> Int64:
    """Of each row of ``collectives`` the time in which its data moved, ns; -1: not known."""
    row = np.where(kernels["collective"] > 0, match(kernels["collective"], table["instance"]), -1)
    known = (row >= 0) & (shortest >= 0)
    out = np.full(len(table), -1, np.int64)
    out[row[known]] = 0
    np.add.at(out, row[known], shortest[known])
    return out


def _spans(result: Result) -> tuple[Int64, Int64]:
    """Start of the first and end of the last kernel of each row of ``collectives``, ns; 0, 0: it has none with times."""
    table, kernels = result.collectives, result.kernels.timed()
    begin, end = np.full(len(table), np.iinfo(np.int64).max), np.zeros(len(table), np.int64)
    instance = kernels["collective"]
    by_instance = np.argsort(table["instance"], kind="stable")
    found = np.flatnonzero(instance != 0)
    if not len(found) or not len(table):
        return begin, end
    sorted_instances = table["instance"][by_instance]
    at = np.searchsorted(sorted_instances, instance[found]).clip(max=len(table) - 1)
    known = sorted_instances[at] == instance[found]
    rows, found = by_instance[at[known]], found[known]
    np.minimum.at(begin, rows, kernels["start"][found])
    np.maximum.at(end, rows, kernels["end"][found])
    return begin, end


def message_bytes(name: str, in_bytes: int, out_bytes: int) -> int:
    """S of nccl-tests: the larger of what a rank gives and gets."""
    return out_bytes if name in _OF_THE_OUTPUT else in_bytes if name in _OF_THE_INPUT else max(in_bytes, out_bytes)


def bus_factor(name: str, ranks: int) -> float:
    """Bus bandwidth by algorithm bandwidth: 2(n-1)/n of an all-reduce, (n-1)/n where each gets or gives the others' parts, else 1."""
    if ranks < 1:
        return float("nan")
    if name in _SUM_AND_SPREAD:
        return 2 * (ranks - 1) / ranks
    return (ranks - 1) / ranks if name in _OF_THE_OUTPUT or name in _OF_THE_INPUT else 1.0
