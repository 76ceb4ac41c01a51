"""The times of two runs that are held against each other, group by group: those of steps, or those of launches."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cuptiprof.analysis.arrays.aggregate import Int64, Parts, sum_by_group
from cuptiprof.analysis.comparison.work_groups import GroupedWork

Float64 = npt.NDArray[np.float64]

MAX_SERIES = 4096
"""Launches that are judged one by one; of more the means of so many stretches of them."""
MAIN_PART = 0.8
"""Share of a group's time that is judged, of the launches that do the same those with most time first: many small ones would outvote those that
matter."""


@dataclass(frozen=True)
class Sides:
    """The work of two runs by the same groups: `group` of each piece of base and of new, of ``groups`` in all."""

    work: tuple[GroupedWork, GroupedWork]
    group: tuple[Int64, Int64]
    groups: int

    def totals(self) -> list[Int64]:
        """ns of each group, of base and of new."""
        return [sum_by_group(g, w.duration, self.groups) for w, g in zip(self.work, self.group, strict=True)]


@dataclass(frozen=True)
class Samples:
    """Times above 0 of both runs, ns, in their order; `of_steps`: their median in each step of each run, where launches are judged."""

    base: Float64
    new: Float64
    of_steps: tuple[Float64, Float64] | None = None

    @property
    def fewest(self) -> int:
        """Of the two runs, the samples of the one that has fewer."""
        return min(len(self.base), len(self.new))


def samples_of_groups(sides: Sides, wanted: Int64, by_steps: bool) -> list[Samples]:
    """Of each of the groups `wanted`: its time in each step in which it ran, or its launches, each over the median of those of both runs that
    do the same (``GroupedWork.like``)."""
    return _by_step(sides, wanted) if by_steps else _by_launch(sides, wanted)


def samples_of_steps(sides: Sides) -> dict[str, Samples]:
    """ "wall": how long each step took, "gpu": the GPU work launched in it."""
    return {"wall": _above_0(map(_lengths, sides.work)), "gpu": _above_0(map(_gpu_times, sides.work))}


def _above_0(values: Iterable[Float64]) -> Samples:
    base, new = values
    return Samples(base[base > 0], new[new > 0])


def _lengths(work: GroupedWork) -> Float64:
    return np.asarray(work.steps.end - work.steps.start, np.float64)


def _gpu_times(work: GroupedWork) -> Float64:
    """Of each step."""
    inside = work.step >= 0
    return np.bincount(work.step[inside], work.duration[inside].astype(np.float64), len(work.steps)).astype(np.float64)


def _by_step(sides: Sides, wanted: Int64) -> list[Samples]:
    place = np.full(sides.groups, -1, np.int64)
    place[wanted] = np.arange(len(wanted))
    out = []
    for work, group in zip(sides.work, sides.group, strict=True):
        rows = np.flatnonzero((work.step >= 0) & (place[group] >= 0))
        steps = len(work.steps)
        key = place[group[rows]] * steps + work.step[rows]
        out.append(np.bincount(key, work.duration[rows], len(wanted) * steps).reshape(len(wanted), steps))
    return [_above_0(both) for both in zip(*out, strict=True)]


@dataclass(frozen=True)
class _Launches:
    """Of a group or a run, by start: how long each took, what it does, and its step (-1: none)."""

    times: Float64
    like: Int64
    step: Int64

    def of(self, rows: Int64) -> _Launches:
        return _Launches(self.times[rows], self.like[rows], self.step[rows])


def _by_launch(sides: Sides, wanted: Int64) -> list[Samples]:
    known: dict[tuple[object, ...], int] = {}
    of_run = []
    for work, group in zip(sides.work, sides.group, strict=True):
        place = np.array([known.setdefault(name, len(known)) for name in work.like_names], np.int64)
        rows = np.flatnonzero(work.duration > 0)
        rows = rows[np.argsort(work.start[rows], kind="stable")]
        launches = _Launches(work.duration[rows].astype(np.float64), place[work.like[rows]], work.step[rows])
        of_run.append((Parts(group[rows], sides.groups), launches))
    return [_relative(*(launches.of(parts[group]) for parts, launches in of_run)) for group in wanted.tolist()]


def _relative(base: _Launches, new: _Launches) -> Samples:
    """Times over the median of those of both runs that do the same, of the kinds that both have and that take most of the time; in ns of
    the shortest of those kinds, so that a tick is at most what it was."""
    kinds, which = np.unique(np.concatenate([base.like, new.like]), return_inverse=True)
    which, times = which.reshape(-1), np.concatenate([base.times, new.times])
    is_new = np.arange(len(times)) >= len(base.times)
    counts = [np.bincount(which[mine], minlength=len(kinds)) for mine in (~is_new, is_new)]
    weight = np.where(np.minimum(*counts) > 0, np.bincount(which, times, len(kinds)), 0.0)
    order = np.argsort(-weight, kind="stable")
    before = np.cumsum(weight[order]) - weight[order]
    kept = order[(before < MAIN_PART * weight.sum()) & (weight[order] > 0)]
    if len(kept) > 1:
        parts = Parts(which, len(kinds))
        centres = {kind: float(np.median(times[parts[kind]])) for kind in kept.tolist()}
        for kind, median in centres.items():
            times[parts[kind]] *= min(centres.values()) / median
    mine, step = np.isin(which, kept), np.concatenate([base.step, new.step])
    medians = [_medians(times[side], step[side]) for side in (mine & ~is_new, mine & is_new)]
    return Samples(
        _stretches(times[mine & ~is_new]),
        _stretches(times[mine & is_new]),
        (medians[0], medians[1]) if min(map(len, medians)) > 1 else None,
    )


def _medians(times: Float64, step: Int64) -> Float64:
    """Of each step in which there are any: the mean would be that of the few that took long."""
    used, which = np.unique(step[step >= 0], return_inverse=True)
    parts, inside = Parts(which.reshape(-1), len(used)), times[step >= 0]
    return np.array([np.median(inside[parts[i]]) for i in range(len(used))], np.float64)


def _stretches(times: Float64) -> Float64:
    """Means of equally long stretches of a series that is too long; what is left at the end is left out."""
    size = -(-len(times) // MAX_SERIES)
    return times if size <= 1 else times[: len(times) // size * size].reshape(-1, size).mean(axis=1)
