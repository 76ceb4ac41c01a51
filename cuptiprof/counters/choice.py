"""Which strategy a request gets, and which of its metrics that leaves out.

What the user named is counted or refused. What only a preset, a set or a section brought along, and the strategy cannot count
beside the rest, is left out with the reason: nobody can drop a name that he never typed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from cuptiprof import _core
from cuptiprof.counters.request import CounterRequest
from cuptiprof.errors import MetricError
from cuptiprof.metrics import Metric

_APART = "needs another hardware configuration than the rest: ask for it alone, or take --replay-mode application"
_SEVERAL = "takes several passes by itself, and 'iterate' has one a launch: 'replay' can count it"


class Choice(NamedTuple):
    """A strategy, what it counts, in which groups, and what is left out, with the reasons."""

    strategy: str
    metrics: Sequence[Metric]
    groups: Sequence[_core.PassGroup]
    left_out: dict[str, str]


def choose(
    request: CounterRequest, planner: _core.MetricPlanner, metrics: Sequence[Metric], *, stepped: bool
) -> Choice:
    """The strategy that was asked for, or of "auto" one that can count these metrics.

    Args:
        stepped: the program calls ``step()``, so that "auto" may spread passes over steps.

    Raises:
        MetricError: metrics that were named one by one, and that the strategy, or none, can count together.
    """
    named = {*request.metrics, *request.events}
    groups = planner.plan(inputs_of(metrics))
    if request.strategy == "replay":
        return _replay(planner, metrics, named, groups)
    if request.strategy == "iterate":
        return _iterate(planner, metrics, named)
    if request.strategy != "auto":
        return Choice(request.strategy, metrics, groups, {})
    if passes_of(groups) == 1:
        return Choice("replay", metrics, groups, {})
    # One pass a launch costs least, but only steps make sure that every kernel comes often enough.
    if stepped:
        try:
            return _all_by_turns(planner, metrics)
        except MetricError:  # some take several passes by themselves
            return _replay(planner, metrics, named, groups)
    try:
        return _replay(planner, metrics, named, groups)
    except MetricError as refused:
        try:
            return _all_by_turns(planner, metrics)
        except MetricError:
            raise refused from None


def inputs_of(metrics: Sequence[Metric]) -> list[str]:
    """The perfworks names that metrics are computed from, each once."""
    return list(dict.fromkeys(name for m in metrics for name in m.inputs))


def passes_of(groups: Sequence[_core.PassGroup]) -> int:
    """How often work must run to be read in all of these groups."""
    return sum(g.passes for g in groups)


def _replay(
    planner: _core.MetricPlanner, metrics: Sequence[Metric], named: set[str], groups: Sequence[_core.PassGroup]
) -> Choice:
    """A replayed kernel has one configuration: the one with what was named, and with most of the rest."""
    if len(groups) == 1:
        return Choice("replay", metrics, groups, {})
    fitting = [[m for m in metrics if set(m.inputs) <= set(g.metrics)] for g in groups]
    kept = max((f for f in fitting if named.isdisjoint({m.name for m in metrics} - {m.name for m in f})),
               key=len, default=[])  # fmt: skip
    if not kept:
        raise MetricError(
            f"these metrics need {len(groups)} hardware configurations, and a replayed kernel has one",
            hint="--replay-mode application on the command line runs the script once for each; strategy='iterate' takes them "
            "in turn, where each fits one pass; or fewer metrics: "
            + " | ".join(", ".join(m.name for m in f) for f in fitting if f),
        )
    return Choice("replay", kept, planner.plan(inputs_of(kept)), _without(metrics, kept, _APART))


def _iterate(planner: _core.MetricPlanner, metrics: Sequence[Metric], named: set[str]) -> Choice:
    """Groups of one pass each; what takes several by itself is left out, or refused where the user named it."""
    several = {i for i in inputs_of(metrics) if passes_of(planner.plan([i])) > 1}
    kept = [m for m in metrics if several.isdisjoint(m.inputs)]
    lost = [m.name for m in metrics if m.name in named and not several.isdisjoint(m.inputs)]
    if lost or not kept:
        raise MetricError(
            f"{', '.join(lost or [m.name for m in metrics])}: several passes each, and 'iterate' has one a launch",
            hint="leave out what needs several, ask for its parts, or use strategy='replay'",
        )
    groups = planner.one_pass_groups(inputs_of(kept))
    return Choice("iterate", kept, groups, _without(metrics, kept, _SEVERAL))


def _all_by_turns(planner: _core.MetricPlanner, metrics: Sequence[Metric]) -> Choice:
    """As ``_iterate``, with every metric: MetricError where one takes several passes by itself."""
    return Choice("iterate", metrics, planner.one_pass_groups(inputs_of(metrics)), {})


def _without(metrics: Sequence[Metric], kept: Sequence[Metric], why: str) -> dict[str, str]:
    return {m.name: why for m in metrics if m not in kept}
