"""Calls of collectives on all ranks as columns, and which of them are one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from cuptiprof.data.codes import distinct_rows
from cuptiprof.job.engines import Tables
from cuptiprof.job.fleet import answer, collective_calls

Int64 = npt.NDArray[np.int64]

# All ranks of the group have given before any has everything; of the others (broadcast, send, ...) a rank may be done long before another.
TOGETHER = ("all_reduce", "allreduce", "all_gather", "allgather", "reduce_scatter", "all_to_all", "alltoall", "barrier")


@dataclass(frozen=True)
class Calls:
    """One value a call and rank, by rank and start.

    Attributes:
        rank, step: step + 1; 0: none was marked.
        call: number of the call: equal on all ranks that took part in it.
        kind: number of what it does, of the same bytes in a group of the same size: calls of a kind can be compared.
        group: number of the group.
        whole: the call is there of as many ranks as its group has.
        start, end: ns, on the rank's clock.
        members: of each group the ranks that have calls, int64.
        together: the ranks can end the call only together.
    """

    rank: Int64
    step: Int64
    call: Int64
    kind: Int64
    group: Int64
    whole: npt.NDArray[np.bool_]
    start: Int64
    end: Int64
    together: npt.NDArray[np.bool_]
    members: list[Int64]

    def __len__(self) -> int:
        return len(self.rank)


def read_calls(tables: Tables) -> Calls:
    """Asks the engine for all calls: as many rows as ranks have calls of collectives, not kernels."""
    found = answer(collective_calls, tables)

    def whole_numbers(name: str) -> Int64:
        return np.asarray(found[name].to_numpy(), np.int64)

    def codes(name: str) -> tuple[Int64, list[str]]:
        encoded: Any = found[name].combine_chunks().dictionary_encode()
        return np.asarray(encoded.indices.to_numpy(zero_copy_only=False), np.int64), encoded.dictionary.to_pylist()

    (names, texts), (groups, _), (listed, _) = codes("name"), codes("group"), codes("ranks")
    rank, start, size = whole_numbers("rank"), whole_numbers("start"), whole_numbers("group_size")
    group = np.asarray(distinct_rows(groups, listed)[1], np.int64)
    _, call = distinct_rows(group, names, whole_numbers("index"))
    _, kind = distinct_rows(names, size, whole_numbers("in_bytes"))
    at_end = np.array([t.strip("_").startswith(TOGETHER) for t in texts], bool)
    order = np.lexsort((start, rank))
    group, rank = group[order], rank[order]
    pairs = np.unique(np.stack([group, rank]), axis=1)
    edges = np.searchsorted(pairs[0], np.arange(int(group.max(initial=-1)) + 2))
    return Calls(
        rank=rank,
        step=whole_numbers("step")[order],
        call=np.asarray(call, np.int64)[order],
        kind=np.asarray(kind, np.int64)[order],
        group=group,
        whole=(np.bincount(call)[call] == size)[order] if len(rank) else np.zeros(0, bool),
        start=start[order],
        end=whole_numbers("end")[order],
        together=at_end[names][order] if len(rank) else np.zeros(0, bool),
        members=[pairs[1][edges[i] : edges[i + 1]] for i in range(len(edges) - 1)],
    )
