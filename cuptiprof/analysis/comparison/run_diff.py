"""Two runs held against each other, group by group: what is new, what is gone, what takes longer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest

import numpy as np
import numpy.typing as npt

from cuptiprof.analysis.arrays.aggregate import Int64, sum_by_group
from cuptiprof.analysis.comparison.diff_samples import Sides
from cuptiprof.analysis.comparison.diff_verdicts import Judged, judge_groups
from cuptiprof.analysis.comparison.host_groups import HostGroups, host_groups
from cuptiprof.analysis.comparison.work_groups import GROUPS, GroupedWork, WorkBy, grouped_work
from cuptiprof.data.result import Result
from cuptiprof.errors import ResultError
from cuptiprof.stats.verdict import ALPHA, THRESHOLD, Kind, Verdict, check_limits
from cuptiprof.text.nearest import did_you_mean

Float64 = npt.NDArray[np.float64]


@dataclass(frozen=True)
class RunNumbers:
    """One run by group, shape (groups,); times in ns.

    Attributes:
        launches, time: GPU work and its durations added up, of the whole run.
        step_time: mean of a training step; NaN where one of the runs has no steps.
        share: 0..1, of the time of all groups.
        calls, host: how often an operator or region ran on the host and for how long, what is inside included, or the length of a step;
            -1: not known.
        counters: metric -> mean of the launches of which it was counted, NaN where there is none; of what both runs have.
        steps: how many there are.
    """

    launches: Int64
    time: Int64
    step_time: Float64
    share: Float64
    calls: Int64
    host: Int64
    counters: Mapping[str, Float64]
    steps: int


@dataclass(frozen=True)
class RunDiff:
    """Two runs by the same groups: those that certainly differ first, by falling absolute change of time, then the others so; last what has no GPU
    work.

    Attributes:
        by: what the groups are. names: of each, shape (groups,).
        base, new: numbers of both.
        change: ns, new - base: of a step where both runs have steps (``per`` "step"), else of the whole run ("run").
        judged: the verdicts; their groups are places in `names`.
        incomparable: why the times of the two runs say nothing of each other; then there are no verdicts unless they were asked for.
    """

    by: WorkBy
    names: list[str]
    base: RunNumbers
    new: RunNumbers
    change: Float64
    per: str
    judged: Judged
    incomparable: str

    def __len__(self) -> int:
        return len(self.names)

    def status(self, group: int) -> str:
        """ "new" or "gone" where only one of the runs has it, else "both"."""
        has = [bool(run.launches[group] or run.calls[group] > 0) for run in (self.base, self.new)]
        return "both" if all(has) else "gone" if has[0] else "new"

    def all_verdicts(self) -> list[tuple[str, Verdict]]:
        """Those on the steps, and of each group."""
        steps = [
            ({"wall": "length of a step", "gpu": "GPU time of a step"}[name], v)
            for name, v in self.judged.of_steps.items()
        ]
        return steps + [(self.names[g], v) for g, v in self.judged.verdicts.items()]

    def slower(self, limit: float) -> list[tuple[str, Verdict]]:
        """What is slower by at least `limit` (0.05: 5 %) for certain: SLOWER, and the whole interval of new / base is at or above 1 + limit."""
        return [(name, v) for name, v in self.all_verdicts() if v.kind is Kind.SLOWER and v.low >= 1 + limit]


def diff_runs(
    base: Result,
    new: Result,
    by: WorkBy = "kernel",
    *,
    short_names: bool = False,
    threshold: float = THRESHOLD,
    across_chips: bool = False,
    demangle: bool = True,
) -> RunDiff:
    """Compare a run with an earlier one.

    Counts and durations are those of ``TraceDiff.compare_traces`` of Holistic Trace Analysis (counts, total_duration, and new - base of them), of the
    whole run; for verdicts see ``judge_groups``. Steps are held against each other in their order.

    Args:
        by: "kernel", "region", "operator", "module" or "step"; GPU work counts for the innermost alone.
        short_names: kernels that differ by template arguments, parameters or addresses only are one.
        threshold: relative difference that does not matter.
        across_chips: judge also times of different GPUs, or of a GPU and a simulated one.

    Raises:
        ResultError: an unknown `by`, or a threshold below 0.
    """
    if by not in GROUPS:
        raise ResultError(
            f"cannot compare by {by!r}{did_you_mean(str(by), GROUPS)}", hint=f"one of: {', '.join(GROUPS)}"
        )
    try:
        check_limits(threshold, ALPHA)
    except ValueError:
        raise ResultError(f"threshold={threshold}: a relative difference is 0 or more") from None
    runs = (base.timed(), new.timed())
    works = [grouped_work(run, by, short_names=short_names, demangle=demangle) for run in runs]
    hosts = [_lengths(work) if by == "step" else host_groups(run, by) for run, work in zip(runs, works, strict=True)]
    names, places = _joined(by, works, hosts)
    groups = [place[work.group] for place, work in zip(places, works, strict=True)]
    metrics = [name for name in runs[0].counters if name in runs[1].counters]
    have_steps = all(len(work.steps) for work in works)
    numbers = [
        _numbers(run, work, group, len(names), metrics, have_steps)
        for run, work, group in zip(runs, works, groups, strict=True)
    ]
    for run, work, host, place in zip(numbers, works, hosts, places, strict=True):
        run.calls[place[len(work.names) :]] = host.calls
        run.host[place[len(work.names) :]] = host.time
    before, now = (n.step_time if have_steps else n.time.astype(np.float64) for n in numbers)
    incomparable = _incomparable(*runs)
    sides = Sides((works[0], works[1]), (groups[0], groups[1]), len(names))
    judged = Judged("", {}, {}, {}) if incomparable and not across_chips else judge_groups(sides, threshold)
    per = "step" if have_steps else "run"
    return _in_order(RunDiff(by, names, numbers[0], numbers[1], now - before, per, judged, incomparable))


def _lengths(work: GroupedWork) -> HostGroups:
    steps = work.steps
    return HostGroups(list(steps.name), np.ones(len(steps), np.int64), steps.end - steps.start)


def _joined(by: WorkBy, works: Sequence[GroupedWork], hosts: Sequence[HostGroups]) -> tuple[list[str], list[Int64]]:
    """Names of both runs, and of each run the places of the groups of its work, and then of those of the host."""
    if by == "step":
        most = max(len(work.steps) for work in works)
        places = [np.r_[np.arange(len(w.steps)), most, np.arange(len(w.steps))].astype(np.int64) for w in works]
        pairs = zip_longest(*(work.steps.name for work in works))
        return [*(" / ".join(dict.fromkeys(n for n in pair if n is not None)) for pair in pairs), "(no step)"], places
    known: dict[str, int] = {}
    places = [
        np.array([known.setdefault(name, len(known)) for name in (*work.names, *host.names)], np.int64)
        for work, host in zip(works, hosts, strict=True)
    ]
    return list(known), places


def _numbers(
    run: Result, work: GroupedWork, group: Int64, groups: int, metrics: list[str], have_steps: bool
) -> RunNumbers:
    time = sum_by_group(group, work.duration, groups)
    whole = int(time.sum())
    inside = np.flatnonzero(work.step >= 0)
    steps = len(work.steps)
    counters = {}
    for metric in metrics:
        value, of = run.counters.of_kernels(run.kernels, metric), group[: work.kernels]
        has = np.isfinite(value)
        count = np.bincount(of[has], minlength=groups)
        total = np.bincount(of[has], value[has], groups)
        counters[metric] = np.divide(total, count, out=np.full(groups, np.nan), where=count > 0)
    return RunNumbers(
        launches=np.bincount(group, minlength=groups).astype(np.int64),
        time=time,
        step_time=sum_by_group(group[inside], work.duration[inside], groups) / steps
        if have_steps
        else np.full(groups, np.nan),
        share=100.0 * time / whole if whole else np.zeros(groups),
        calls=np.full(groups, -1, np.int64),
        host=np.full(groups, -1, np.int64),
        counters=counters,
        steps=steps,
    )


def _incomparable(base: Result, new: Result) -> str:
    if base.simulated != new.simulated:
        return f"the {'base' if base.simulated else 'new'} run is simulated and the other is not"
    names = [sorted({str(name) for name in run.devices["name"]} - {""}) for run in (base, new)]
    if all(names) and names[0] != names[1]:
        return f"other GPUs: {', '.join(names[0])} in the base, {', '.join(names[1])} now"
    return ""


def _in_order(diff: RunDiff) -> RunDiff:
    """Without groups that neither run has; those with GPU work first, of them what certainly differs."""
    host = np.maximum(diff.new.host, 0) - np.maximum(diff.base.host, 0)
    sure = np.array([diff.status(g) != "both" for g in range(len(diff))], bool)
    for group, verdict in diff.judged.verdicts.items():
        sure[group] = verdict.differs or verdict.kind is Kind.SMALL
    idle = diff.base.time + diff.new.time == 0
    order = np.lexsort((-np.abs(host), -np.abs(diff.change), ~sure, idle))
    has = (diff.base.launches + diff.new.launches > 0) | (np.maximum(diff.base.calls, diff.new.calls) > 0)
    order = order[has[order]]
    place = {group: i for i, group in enumerate(order.tolist())}
    return replace(
        diff,
        names=[diff.names[g] for g in order.tolist()],
        base=_rows(diff.base, order),
        new=_rows(diff.new, order),
        change=diff.change[order],
        judged=replace(
            diff.judged,
            verdicts={place[g]: v for g, v in diff.judged.verdicts.items()},
            reasons={place[g]: text for g, text in diff.judged.reasons.items()},
        ),
    )


def _rows(run: RunNumbers, rows: npt.NDArray[np.intp]) -> RunNumbers:
    return replace(
        run,
        counters={metric: values[rows] for metric, values in run.counters.items()},
        **{name: getattr(run, name)[rows] for name in ("launches", "time", "step_time", "share", "calls", "host")},
    )
