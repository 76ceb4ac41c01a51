"""One point over the runs that can be compared, and the steps in its times."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

import numpy as np

from cuptiprof.bench.results.baseline import differences
from cuptiprof.bench.results.parts import Scalar
from cuptiprof.bench.results.row import Row
from cuptiprof.stats.change_points import can_find, find_steps


@dataclass(frozen=True)
class Reading:
    """What one run says of a point.

    Attributes:
        ns: its median.
        commit: hex; empty: not known. `changed`: the checkout had changes beside it.
        when: Unix s, of the commit where it is known, else of the run; 0: not known.
        environment: of the run.
    """

    ns: float
    commit: str
    changed: bool
    when: float
    environment: Mapping[str, Any]

    @property
    def label(self) -> str:
        """The commit, short, with "+" where there were changes."""
        return (self.commit[:12] or "-") + ("+" if self.changed else "")

    @property
    def date(self) -> str:
        return datetime.fromtimestamp(self.when, timezone.utc).strftime("%Y-%m-%d") if self.when else "-"


@dataclass(frozen=True)
class Segment:
    """Runs between two steps.

    Attributes:
        readings: in the order of their commits.
        change: of the median against the segment before, 0.05: 5 % slower; NaN of the first. p_value: of the step; NaN of the first.
        with_it: what else is another one since then: driver, versions, host.
    """

    readings: tuple[Reading, ...]
    change: float
    p_value: float
    with_it: tuple[str, ...]

    @property
    def median(self) -> float:
        """ns, of the runs' medians."""
        return float(np.median([r.ns for r in self.readings]))


@dataclass(frozen=True)
class PointRuns:
    """One point over the runs that can be compared.

    Attributes:
        benchmark, params: which.
        conditions: what all runs have in common, by name: chip, driver, strategy, state of the L2.
        readings: in the order of their commits.
    """

    benchmark: str
    params: Mapping[str, Scalar]
    conditions: Mapping[str, str]
    readings: tuple[Reading, ...]

    @property
    def title(self) -> str:
        return Row(self.benchmark, self.params).title


@dataclass(frozen=True)
class PointTrend:
    """A point's runs, cut where its times begin to be others.

    Attributes:
        segments: one more than there are steps.
        enough: there are so many runs that a step can be told from chance.
    """

    of: PointRuns
    segments: tuple[Segment, ...]
    enough: bool


def find_trends(points: Sequence[PointRuns], threshold: float, alpha: float) -> list[PointTrend]:
    """Steps smaller than `threshold` are none; that any step is found in points that have none happens in `alpha` (Bonferroni)."""
    level = alpha / max(1, len(points))
    return [PointTrend(p, _segments(p.readings, threshold, level), can_find(len(p.readings), level)) for p in points]


def _segments(readings: Sequence[Reading], threshold: float, alpha: float) -> tuple[Segment, ...]:
    logs = np.log([r.ns for r in readings])
    steps = find_steps(logs, alpha)
    while steps:  # the smallest first: what is left of it belongs to its neighbours
        ends = [0, *(s.at for s in steps), len(readings)]
        middles = [float(np.median(logs[a:b])) for a, b in itertools.pairwise(ends)]
        sizes = np.abs(np.diff(middles))
        if sizes.min() >= math.log1p(threshold):
            break
        del steps[int(sizes.argmin())]
    ends = [0, *(s.at for s in steps), len(readings)]
    out: list[Segment] = []
    for i, (first, after) in enumerate(itertools.pairwise(ends)):
        segment = Segment(tuple(readings[first:after]), math.nan, math.nan, ())
        if i:
            change = segment.median / out[-1].median - 1
            before, since = readings[first - 1], readings[first]
            changed = differences(before.environment, since.environment)
            names = [d.name.replace("_version", "") for d in changed if d.loud]
            if before.commit and (before.commit, before.changed) == (since.commit, since.changed):
                names.insert(0, "the commit is the same")
            segment = Segment(segment.readings, change, steps[i - 1].p_value, tuple(names))
        out.append(segment)
    return tuple(out)
