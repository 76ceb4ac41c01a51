"""What communication takes across ranks: the time that the data takes, and the time that ranks wait for each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cuptiprof.analysis.arrays.aggregate import Int64
from cuptiprof.analysis.arrays.intervals import length, union_of
from cuptiprof.analysis.counter_values.kernel_counters import match
from cuptiprof.analysis.work.communication import communicating
from cuptiprof.analysis.work.gpu_work import kernel_names
from cuptiprof.data.codes import distinct_rows
from cuptiprof.data.result import Result
from cuptiprof.data.tables import Table

_Kind = tuple[str, ...]


@dataclass(frozen=True)
class CommunicationWait:
    """Of one GPU of a rank.

    Attributes:
        device: ordinal. kernels: that communicate.
        paired: of them, those that were found on other ranks too.
        communication: time in which any of them ran, ns.
        transfer: part of it in which data moved; None: nothing was paired.
        synchronising: the rest, in which the rank waited for others; kernels without a partner are left out of both.
    """

    device: int
    kernels: int
    paired: int
    communication: int
    transfer: int | None
    synchronising: int | None


def communication_waits(ranks: Sequence[Result]) -> list[list[CommunicationWait]]:
    """Of each rank, by GPU: "Synchronizing/Communication Overview" of TensorBoard's plugin for torch.profiler.

    The n-th kernel of a collective in a process group is one with the n-th of it on the other ranks of that group (where no collective is known,
    the n-th kernel of a name). The data takes as long as the shortest of them, at the end of each; before, a rank waits. No clocks are compared. Where
    ranks do not have as many kernels of a kind, which of them belong together is not known, and none is paired.
    """
    return [_of_rank(kernels, shortest) for kernels, shortest in shortest_partners(ranks)]


def shortest_partners(ranks: Sequence[Result]) -> list[tuple[Table, Int64]]:
    """Of each rank its kernels that communicate, and for each of them the time of the shortest among it and its partners, ns; -1: it has none."""
    kernels = [run.kernels.where(communicating(run.kernels)) for run in ranks]
    shortest = [np.full(len(table), -1, np.int64) for table in kernels]
    of_kind: dict[_Kind, list[tuple[int, Int64]]] = {}
    for rank, run in enumerate(ranks):
        for kind, rows in _by_kind(kernels[rank], run.collectives).items():
            of_kind.setdefault(kind, []).append((rank, rows))
    for found in of_kind.values():
        if len(found) < 2 or len({len(rows) for _, rows in found}) > 1:
            continue
        lasted = np.min([kernels[rank]["end"][rows] - kernels[rank]["start"][rows] for rank, rows in found], axis=0)
        for rank, rows in found:
            shortest[rank][rows] = np.maximum(lasted, 0)
    return list(zip(kernels, shortest, strict=True))


def _by_kind(kernels: Table, collectives: Table) -> dict[_Kind, Int64]:
    """Rows of kernels by what they do, in the order of their start."""
    row = np.where(kernels["collective"] > 0, match(kernels["collective"], collectives["instance"]), -1)
    known = row >= 0
    names = kernel_names(kernels, True)
    columns = [np.where(known, -1, names.ids.astype(np.int64))]
    for column in ("group", "ranks", "name"):
        codes = np.full(len(row), -1, np.int64)
        codes[known] = collectives.codes(column)[row[known]]
        columns.append(codes)
    kinds, which = distinct_rows(*columns)
    order = np.lexsort((kernels["start"], which))
    edges = np.searchsorted(which[order], np.arange(len(kinds) + 1))
    strings = kernels.strings
    out: dict[_Kind, Int64] = {}
    for i, (name, *codes) in enumerate(kinds.tolist()):
        kind = [str(strings[code]) if code >= 0 else "" for code in codes]
        kind.append(names.names[name] if name >= 0 else "")
        out[tuple(kind)] = order[edges[i] : edges[i + 1]]
    return out


def _of_rank(kernels: Table, shortest: Int64) -> list[CommunicationWait]:
    out = []
    for device in np.unique(kernels["device"]).tolist():
        mine = kernels["device"] == device
        start, end, least = kernels["start"][mine], kernels["end"][mine], shortest[mine]
        paired = least >= 0
        moved = length(union_of(end[paired] - least[paired], end[paired]))
        together = length(union_of(start[paired], end[paired]))
        some = bool(paired.any())
        out.append(
            CommunicationWait(
                device=device,
                kernels=len(start),
                paired=int(paired.sum()),
                communication=length(union_of(start, end)),
                transfer=moved if some else None,
                synchronising=together - moved if some else None,
            )
        )
    return out
