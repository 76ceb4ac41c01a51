"""Communication between ranks: calls of torch.distributed by group, size and type, with the bandwidths of nccl-tests."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from cuptiprof.analysis.collectives.collective_work import CollectiveSums, bus_factor, collective_sums, message_bytes
from cuptiprof.analysis.collectives.communication_waits import shortest_partners
from cuptiprof.analysis.work.communication import communicating
from cuptiprof.data.result import Result
from cuptiprof.report.model import Column, Heading, View, left_out, nothing
from cuptiprof.report.views.by_rank import rank_of

_COLUMNS = (
    Column("group_title", "Group", "label", machine=False),
    Column("name", "Collective", "label"),
    Column("dtype", "Type", "label"),
    Column("in_bytes", "In", "bytes", min_width=8),
    Column("out_bytes", "Out", "bytes", min_width=8),
    Column("calls", "Calls", "count", min_width=5),
    Column("host_ns", "Host avg", "duration", min_width=9, rank=1),
    Column("gpu_ns", "GPU avg", "duration", min_width=9),
    Column("transfer_ns", "Transfer avg", "duration", min_width=9, rank=2),
    Column("algorithm_bandwidth", "algbw", "byte_rate", min_width=10, rank=2),
    Column("bus_bandwidth", "busbw", "byte_rate", min_width=10),
    Column("rank", "Rank", "count", human=False),
    Column("group", "Group", "label", human=False),
    Column("group_description", "Description", "label", human=False),
    Column("backend", "Backend", "label", human=False),
    Column("group_size", "Ranks", "count", human=False),
    Column("ranks", "Ranks", "text", human=False),
)
_LEGEND = (
    "algbw, busbw: as nccl-tests define them, over the time from a call's first kernel to the end of its last, waiting for the slowest "
    "rank included.",
)
_UNKNOWN = "unknown group"


_TRANSFER = "Transfer: the shortest of a call's kernels and their partners on the other ranks; the rest of the GPU's time is waiting for them."
_ALONE = "How much of the GPU's time the data took (Transfer) the runs of all ranks tell: a folder of them, or report(ranks=...)."


def view(result: Result, *, demangle: bool = True, limit: int | None = None, ranks: Sequence[Result] = ()) -> View:
    """One row a collective of one size and type, by rank and group, those with the most GPU time, then the most host time, first."""
    del demangle  # names of collectives are not mangled
    runs = [result, *ranks]
    data: dict[str, list[Any]] = {c.key: [] for c in _COLUMNS}
    total = unknown = 0
    for run, partners in zip(runs, shortest_partners(runs), strict=True):
        sums = collective_sums(run, partners)
        total += len(sums)
        for row in _rows(run, sums, limit):
            row["group_title"] = f"rank {rank_of(run)}, {row['group_title']}" if ranks else row["group_title"]
            for key, column in data.items():
                column.append(row[key])
        unknown += int(np.count_nonzero(communicating(run.kernels) & (run.kernels["collective"] == 0)))
    footers = [*left_out(total, len(data["name"]), "rows")]
    if unknown:
        footers.append(f"{unknown:,} communicating kernels were launched by none of these calls.")
    if any(time is not None for time in data["gpu_ns"]):
        footers.append(_TRANSFER if any(time is not None for time in data["transfer_ns"]) else _ALONE)
    return View(
        columns=_COLUMNS,
        data=data,
        footers=(*footers, *(_LEGEND if any(b is not None for b in data["bus_bandwidth"]) else ())),
        headings=(Heading("group_title"),),
        notes={"": nothing('collectives (activities=["collectives", ...])', 0)},
    )


def _rows(run: Result, sums: CollectiveSums, limit: int | None) -> Iterator[dict[str, Any]]:
    """Of one rank, `limit` a group."""
    table = run.collectives
    shown: dict[str, int] = {}
    for i in np.lexsort((-sums.host_ns, -sums.gpu_ns, table.codes("group")[sums.first])).tolist():
        row = table.row(int(sums.first[i]))
        shown[row["group"]] = shown.get(row["group"], 0) + 1
        if limit is not None and shown[row["group"]] > limit:
            continue
        gpu_ns = int(sums.gpu_ns[i]) / int(sums.gpu_calls[i]) if sums.gpu_calls[i] else None
        bytes_ = message_bytes(row["name"], row["in_bytes"], row["out_bytes"])
        algorithm = bytes_ / gpu_ns * 1e9 if gpu_ns and bytes_ else None
        known = algorithm is not None and row["group_size"]
        yield {
            **row,
            "rank": rank_of(run),
            "group_title": _title(row),
            "calls": int(sums.calls[i]),
            "host_ns": int(sums.host_ns[i]) / int(sums.calls[i]),
            "gpu_ns": gpu_ns,
            "transfer_ns": int(sums.transfer_ns[i]) / int(sums.paired_calls[i]) if sums.paired_calls[i] else None,
            "algorithm_bandwidth": algorithm,
            "bus_bandwidth": algorithm * bus_factor(row["name"], row["group_size"]) if algorithm and known else None,
        }


def _title(row: dict[str, Any]) -> str:
    if not row["group"] and not row["group_size"]:
        return _UNKNOWN
    about = ", ".join(text for text in (row["group_description"], row["backend"]) if text)
    ranks = f"ranks {row['ranks']}" if row["ranks"] else f"{row['group_size']} ranks"
    return f"group {row['group']}{f' ({about})' if about else ''}, {ranks}"
