"""Nsight Compute's sections and sets as presets: what CUPTI can count of them, and what was left out and why."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

from cuptiprof.data.chips import CHIPS
from cuptiprof.errors import FilterError, MetricError
from cuptiprof.filter.kernel_filter import KernelFilter
from cuptiprof.metrics import name_tables
from cuptiprof.metrics.lookup import find_metric, no_counter, unknown
from cuptiprof.metrics.metric import Describe, Exists, Metric, Selection
from cuptiprof.metrics.name_tables import MetricSection, SectionRow, is_among
from cuptiprof.metrics.perfworks import is_sampling_name, split_name
from cuptiprof.metrics.target import Target, make_target

# Sections of Nsight Compute that show no counter at all.
_WITHOUT_COUNTERS = ("Nvlink_Tables", "Nvlink_Topology")
_SETS = ("basic", "detailed", "full", "roofline", "nvlink", "pmsampling")  # in ncu's order
_PER_UNIT = "values of each unit of the chip, which CUPTI gives rolled up only; its roll-ups are counted"
_SAMPLED = "counted by PM sampling: strategy='sample'"


def section_names() -> list[str]:
    """Identifiers of all sections, in the order of ncu's pages."""
    return list(name_tables.sections())


def set_names() -> list[str]:
    """Names of all sets: basic, detailed, full, roofline, nvlink, pmsampling."""
    found = {name for section in name_tables.sections().values() for name in section.sets}
    return sorted(found, key=lambda name: _SETS.index(name) if name in _SETS else len(_SETS))


def resolve_set(
    set: str, chip: str, *, exists: Exists | None = None, describe: Describe | None = None, sampling: bool = False
) -> Selection:
    """What CUPTI can count of an ncu set ("basic", "full", ...) on one chip.

    Args:
        set: ncu's name of the set.
        chip, exists, describe: as in :func:`cuptiprof.metrics.resolve`.
        sampling: for PM sampling: metrics that ncu marks with ``pmsampling:`` are in, under their own names.

    Raises:
        MetricError: unknown set or chip.
    """
    if set not in set_names():
        raise unknown(set, "set", set_names())
    target = make_target(chip, exists, describe)
    selection = _join(select_section(s, target, sampling) for s in name_tables.sections().values() if set in s.sets)
    if sampling or set == "pmsampling":
        return selection
    # ncu samples these beside the passes of the other sections; as ranges they would only cost passes.
    sampled = {m.name: _SAMPLED for m in selection.metrics if is_sampling_name(m.name)}
    return Selection(tuple(m for m in selection.metrics if m.name not in sampled), {**selection.dropped, **sampled})


def resolve_section(
    section: str, chip: str, *, exists: Exists | None = None, describe: Describe | None = None, sampling: bool = False
) -> Selection:
    """What CUPTI can count of an ncu section ("SpeedOfLight"), or of all whose identifier ``regex:...`` matches whole.

    Args:
        section: identifier, or ``regex:`` and a POSIX extended regular expression.
        chip, exists, describe, sampling: as in :func:`resolve_set`.

    Raises:
        MetricError: unknown section or chip, a bad expression, or one that matches no section.
    """
    target = make_target(chip, exists, describe)
    return _join(select_section(s, target, sampling) for s in _matching(section))


def _matching(section: str) -> list[MetricSection]:
    known = name_tables.sections()
    if section.startswith("regex:"):
        try:
            pattern = KernelFilter(f"regex:^({section[6:]})$")
            matched = [s for name, s in known.items() if pattern.matches_name(name)]
        except FilterError as e:
            raise MetricError(f"{section!r}: {e.message}", hint=e.hint) from None
        if not matched:
            raise MetricError(f"{section!r} matches no section", hint=f"sections: {', '.join(known)}")
        return matched
    if section in known:
        return [known[section]]
    if section in _WITHOUT_COUNTERS:
        raise MetricError(f"the section {section} shows no counters")
    raise unknown(section, "section", known)


def select_section(section: MetricSection, target: Target, sampling: bool = False) -> Selection:
    """One section on the target's chip."""
    metrics: dict[str, Metric] = {}
    dropped: dict[str, str] = {}
    for row in section.rows:
        name = row.metric.removeprefix("pmsampling:") if sampling else row.metric
        if name in metrics or not (is_among(target.like, row.chips) or _is_new(target)):
            continue
        reason = _why_not(name, row, target)
        if reason:
            dropped.setdefault(name, reason)
            continue
        try:
            metric = find_metric(name, target)
        except MetricError as e:
            dropped.setdefault(name, e.message)
            continue
        if not metric.description and not row.label.startswith("{"):
            metric = dataclasses.replace(metric, description=row.label)
        metrics[name] = metric
    return Selection(tuple(metrics.values()), dropped)


def _is_new(target: Target) -> bool:
    """A chip that the catalogue has no lists for: the planner alone decides."""
    return target.chip not in CHIPS


def _why_not(name: str, row: SectionRow, target: Target) -> str:
    if name.startswith("pmsampling:"):
        return _SAMPLED
    reason = no_counter(name)
    if reason:
        return reason
    if name in name_tables.derived():
        return ""
    parts = split_name(name)
    if parts is None:
        return "a count per instruction of the code, not a hardware counter"
    if not parts.rollup:
        return _PER_UNIT
    # Also where the library knows the name: some have no schedule.
    if is_among(target.chip, row.missing_on):
        return f"{target.chip} has no such counter"
    return ""


def _join(selections: Iterable[Selection]) -> Selection:
    metrics: dict[str, Metric] = {}
    dropped: dict[str, str] = {}
    for selection in selections:
        for metric in selection.metrics:
            metrics.setdefault(metric.name, metric)
        for name, reason in selection.dropped.items():
            dropped.setdefault(name, reason)
    return Selection(tuple(metrics.values()), dropped)


def section_page(section: str, chip: str) -> list[tuple[str, str, str]]:
    """(where, label, metric) of a section on a chip, as ncu orders its page; ``where`` is header, metrics, body or top.

    Raises:
        MetricError: unknown section or chip.
    """
    target = make_target(chip)
    found = name_tables.sections().get(section)
    if found is None:
        raise unknown(section, "section", name_tables.sections())
    return [(row.where, row.label, row.metric) for row in found.rows if is_among(target.like, row.chips)]
