"""Which rank holds the others up, and whether it is its GPU, its host or its link. No clocks are compared.

Scores are those of NVIDIA's nvidia-resiliency-ext (attribution/straggler/reporting.py): best of all ranks by own, 1 is the best, a straggler is
below 0.75. Of the GPU: medians of each kernel that all ranks run, weighted by the time in it. Of the stage: what a rank does between the collectives of a
step (StageFrontier, arXiv 2606.06751, compares stages for the same reason: who is late at a collective is not who is long in it). Of the
link: how long the data of a call took in the groups of the rank, against calls of the same kind in other groups.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cuptiprof.data.codes import distinct_rows
from cuptiprof.job.clocks import Alignment, Float64
from cuptiprof.job.engines import Tables
from cuptiprof.job.fleet import answer, kernel_medians
from cuptiprof.job.rank_calls import Calls

THRESHOLD = 0.75
"""nvidia-resiliency-ext's; below it a rank is a straggler."""


@dataclass(frozen=True)
class RankScore:
    """One rank; a score is NaN where nothing tells.

    Attributes:
        stage_ns: median over the steps of the time outside of collectives, from the first one of the rank on.
        stage, gpu, link: scores.
        late_ns: median of how much later than the median rank it came to its collectives, by aligned clocks; NaN without.
        last: share of its collectives to which it came last; NaN without clocks.
        cause: "slow GPU", "slow host", "slow link", or "": none of its scores is below the threshold.
    """

    rank: int
    host: str
    stage_ns: float
    stage: float
    gpu: float
    link: float
    late_ns: float
    last: float
    cause: str


def rank_scores(
    tables: Tables,
    calls: Calls,
    hosts: dict[int, str],
    alignment: Alignment | None = None,
    threshold: float = THRESHOLD,
) -> list[RankScore]:
    """All ranks, the one that holds the others up most first.

    Args:
        hosts: rank -> name, of all ranks that are there.
    """
    ranks = sorted(hosts)
    stages = stage_times(calls, ranks)
    best = float(np.nanmin(stages)) if np.isfinite(stages).any() else float("nan")
    with np.errstate(divide="ignore", invalid="ignore"):
        stage = np.where(stages > 0, best / stages, np.where(stages == 0, 1.0, np.nan))
    gpu = gpu_scores(tables, ranks)
    link = link_scores(calls, ranks, hosts)
    late, last = _arrivals(calls, ranks, alignment)
    found = [
        RankScore(
            rank=rank,
            host=hosts[rank],
            stage_ns=float(stages[i]),
            stage=float(stage[i]),
            gpu=float(gpu[i]),
            link=float(link[i]),
            late_ns=float(late[i]),
            last=float(last[i]),
            cause=_cause(stage[i], gpu[i], link[i], threshold),
        )
        for i, rank in enumerate(ranks)
    ]
    return sorted(found, key=lambda s: (min(x for x in (s.stage, s.gpu, s.link, np.inf) if x == x), s.rank))


def _cause(stage: float, gpu: float, link: float, threshold: float) -> str:
    if gpu < threshold:
        return "slow GPU"
    if stage < threshold:
        return "slow host"
    return "slow link" if link < threshold else ""


def stage_times(calls: Calls, ranks: Sequence[int]) -> Float64:
    """Of each rank the median over its steps of the time between its collectives, ns, shape (ranks,); NaN: fewer than two of them.

    A stage lasts from the end of the collectives before, on the same rank, to the start of the next; it is of the step of the latter. Without marked
    steps each stage counts by itself.
    """
    out = np.full(len(ranks), np.nan)
    for i, rank in enumerate(ranks):
        mine = np.flatnonzero(calls.rank == rank)
        if len(mine) < 2:
            continue
        ends = np.maximum.accumulate(calls.end[mine])
        stage = np.maximum(calls.start[mine][1:] - ends[:-1], 0)
        step = calls.step[mine][1:]
        if (step > 0).any():
            _, which = np.unique(step, return_inverse=True)
            stage = np.bincount(which, weights=stage)[1 if len(stage) > 1 and which[-1] > 0 else 0 :]
        out[i] = float(np.median(stage))
    return out


def gpu_scores(tables: Tables, ranks: Sequence[int]) -> Float64:
    """nvidia-resiliency-ext's relative GPU score of each rank, shape (ranks,): over the kernels that all ranks with kernels run, the best median by the
    rank's own, weighted by the rank's time in the kernel; kernels that communicate are left out. NaN: no such kernel."""
    found = answer(kernel_medians, tables)
    rank = np.asarray(found["rank"].to_numpy(), np.int64)
    encoded: Any = found["name"].combine_chunks().dictionary_encode()
    name = np.asarray(encoded.indices.to_numpy(zero_copy_only=False), np.int64)
    median, total = (np.asarray(found[c].to_numpy(), np.float64) for c in ("median_ns", "total_ns"))
    best = np.full(int(name.max(initial=-1)) + 1, np.inf)
    np.minimum.at(best, name, median)
    everywhere = np.bincount(name, minlength=len(best)) == len(np.unique(rank))
    use = everywhere[name] & (median > 0)
    weight = np.bincount(rank[use], total[use], minlength=max(ranks, default=0) + 1)
    scores = np.bincount(rank[use], total[use] * best[name[use]] / median[use], minlength=len(weight))
    with np.errstate(invalid="ignore"):
        return np.asarray((scores / np.where(weight > 0, weight, np.nan))[np.asarray(ranks, np.int64)])


def link_scores(calls: Calls, ranks: Sequence[int], hosts: dict[int, str]) -> Float64:
    """Of each rank the score of the best of its groups, shape (ranks,): a slow link makes every group slow that goes over it, and those it shares
    with sound ranks only once.

    The data of a call takes as long as the shortest of its ranks; groups on one host and groups across hosts are compared with their like only.
    NaN: no group of the rank has another like it.
    """
    out = np.full(len(ranks), np.nan)
    use = calls.whole & calls.together
    if not use.any():
        return out
    shortest = np.full(int(calls.call.max()) + 1, np.iinfo(np.int64).max)
    np.minimum.at(shortest, calls.call[use], (calls.end - calls.start)[use])
    across = np.array([len({hosts.get(int(r), "") for r in members}) > 1 for members in calls.members], bool)
    first = np.unique(calls.call[use], return_index=True)[1]
    kind, group, call = (x[use][first] for x in (calls.kind, calls.group, calls.call))
    pairs, which = distinct_rows(kind, group)
    order = np.lexsort((shortest[call], which))
    edges = np.searchsorted(which[order], np.arange(len(pairs) + 1))
    middle = (edges[:-1] + edges[1:] - 1) // 2
    lasts = shortest[call][order][middle].astype(np.float64)
    scores: dict[int, list[float]] = {}
    like = np.stack([pairs[:, 0], across[pairs[:, 1]].astype(np.int64)], axis=1)
    _, alike = distinct_rows(like[:, 0], like[:, 1])
    for each in range(int(alike.max()) + 1):
        same = np.flatnonzero(alike == each)
        if len(same) < 2:
            continue
        best = float(lasts[same].min())
        for i in same.tolist():
            score = best / lasts[i] if lasts[i] > 0 else 1.0
            scores.setdefault(int(pairs[i, 1]), []).append(score)
    of_rank: dict[int, float] = {}
    for g, values in scores.items():
        for r in calls.members[g].tolist():
            of_rank[r] = max(of_rank.get(r, 0.0), float(np.median(values)))
    for i, rank in enumerate(ranks):
        out[i] = of_rank.get(rank, np.nan)
    return out


def _arrivals(calls: Calls, ranks: Sequence[int], alignment: Alignment | None) -> tuple[Float64, Float64]:
    """Median lateness, ns, and the share of calls in which the rank was last; only calls of which all ranks are aligned."""
    late, last = np.full(len(ranks), np.nan), np.full(len(ranks), np.nan)
    if alignment is None or len(alignment.clocks) < 2:
        return late, last
    start = np.full(len(calls), np.nan)
    for rank, clock in alignment.clocks.items():
        mine = calls.rank == rank
        start[mine] = clock.aligned(calls.start[mine])
    known = calls.whole & np.isfinite(start)
    counts, all_of = np.bincount(calls.call[known], minlength=int(calls.call.max()) + 1), np.bincount(calls.call)
    use = np.flatnonzero(known & (counts == all_of)[calls.call] & (all_of > 1)[calls.call])
    if not len(use):
        return late, last
    order = use[np.lexsort((start[use], calls.call[use]))]
    call, at = calls.call[order], start[order]
    _, begin, size = np.unique(call, return_index=True, return_counts=True)
    middle = (at[begin + (size - 1) // 2] + at[begin + size // 2]) / 2
    lateness = at - np.repeat(middle, size)
    is_last = np.zeros(len(order), bool)
    is_last[begin + size - 1] = True
    for i, rank in enumerate(ranks):
        mine = calls.rank[order] == rank
        if mine.any():
            late[i], last[i] = float(np.median(lateness[mine])), float(is_last[mine].mean())
    return late, last
