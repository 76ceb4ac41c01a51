"""Which host holds the others up: what its ranks have in common."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cuptiprof.job.stragglers import THRESHOLD, RankScore


@dataclass(frozen=True)
class HostScore:
    """One host.

    Attributes:
        ranks: on it that are there. slow: of them below the threshold.
        stage, gpu, link: medians of its ranks' scores; NaN: none has one.
        late_ns: median of its ranks' medians; NaN without aligned clocks.
        cause: that of at least half of its ranks; "": they have none in common.
    """

    host: str
    ranks: int
    slow: int
    stage: float
    gpu: float
    link: float
    late_ns: float
    cause: str


def host_scores(ranks: Sequence[RankScore]) -> list[HostScore]:
    """All hosts, the one with the lowest score first."""
    by_host: dict[str, list[RankScore]] = defaultdict(list)
    for rank in ranks:
        by_host[rank.host].append(rank)
    found = []
    for host, mine in by_host.items():
        (cause, often), *_ = Counter(r.cause for r in mine).most_common()
        medians = {name: _median([getattr(r, name) for r in mine]) for name in ("stage", "gpu", "link", "late_ns")}
        slow = sum(min(x for x in (r.stage, r.gpu, r.link, np.inf) if x == x) < THRESHOLD for r in mine)
        found.append(HostScore(host, len(mine), slow, **medians, cause=cause if 2 * often >= len(mine) else ""))
    return sorted(found, key=lambda h: (min(x for x in (h.stage, h.gpu, h.link, np.inf) if x == x), h.host))


def _median(values: list[float]) -> float:
    known = [value for value in values if value == value]
    return float(np.median(known)) if known else float("nan")
