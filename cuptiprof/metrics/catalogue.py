"""Names to metrics: nvprof's names and events, perfworks names, presets. ``docs/metrics.md`` says how names resolve."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from cuptiprof.errors import MetricError
from cuptiprof.metrics import name_tables
from cuptiprof.metrics.lookup import find_metric, from_entry, unknown
from cuptiprof.metrics.metric import Describe, Exists, Metric, Selection
from cuptiprof.metrics.metric_sections import select_section
from cuptiprof.metrics.name_tables import Entry
from cuptiprof.metrics.target import Target, make_target

MAX_NAMES = 4096
_NOT_IN_ALL = ("none", "legacy")  # nvprof on today's chips knows neither


def resolve(
    names: str | Iterable[str],
    chip: str,
    *,
    exists: Exists | None = None,
    describe: Describe | None = None,
    chips_with: Callable[[str], Iterable[str]] | None = None,
) -> list[Metric]:
    """Metrics by name on one chip; presets and "all" stand for what the chip has of them.

    Args:
        names: names, or a text with commas between them: nvprof metrics, perfworks names with roll-up, presets
            ("occupancy", "memory", ...), "analysis", "all".
        chip: exact name, "GH100".
        exists: asks the planner whether the chip has a perfworks name. Without it the catalogue's data answer for
            nvprof's names, and any well-formed perfworks name is accepted.
        describe: ``MetricPlanner.properties``, for units and descriptions of perfworks names; stands for exists too.
        chips_with: which chips have a perfworks name, for error messages.

    Raises:
        MetricError: a name that is unknown (with the nearest ones), that the chip lacks (with the chips that have it),
            that has no counterpart today (with the reason), or a base name without roll-up (with the roll-ups).
    """
    return list(select(names, chip, exists=exists, describe=describe, chips_with=chips_with).metrics)


def select(
    names: str | Iterable[str],
    chip: str,
    *,
    exists: Exists | None = None,
    describe: Describe | None = None,
    chips_with: Callable[[str], Iterable[str]] | None = None,
) -> Selection:
    """As :func:`resolve`, and what the presets had to leave out.

    Raises:
        MetricError: as :func:`resolve`.
    """
    target = make_target(chip, exists, describe, chips_with)
    metrics: dict[str, Metric] = {}
    dropped: dict[str, str] = {}
    for name in split_names(names):
        for metric in _expand(name, target, dropped):
            metrics.setdefault(metric.name, metric)
    return Selection(tuple(metrics.values()), dropped)


def _expand(name: str, target: Target, dropped: dict[str, str]) -> list[Metric]:
    if name == "all":
        return _available(name_tables.metrics().values(), target, dropped)
    if name not in name_tables.presets():
        return [find_metric(name, target)]
    out: list[Metric] = []
    for member in name_tables.presets()[name][1]:
        if member.startswith("section:"):
            selection = select_section(name_tables.sections()[member.removeprefix("section:")], target)
            out += selection.metrics
            dropped.update(selection.dropped)
        else:
            try:
                out.append(find_metric(member, target))
            except MetricError as e:
                dropped[member] = e.message
    return out


def _available(entries: Iterable[Entry], target: Target, dropped: dict[str, str]) -> list[Metric]:
    out = []
    for entry in entries:
        if entry.status not in _NOT_IN_ALL:
            try:
                out.append(from_entry(entry, target))
            except MetricError as e:
                dropped[entry.name] = e.message
    return out


def resolve_events(
    names: str | Iterable[str],
    chip: str,
    *,
    exists: Exists | None = None,
    describe: Describe | None = None,
) -> list[Metric]:
    """nvprof's events by name on one chip; "all" for all that it has.

    Raises:
        MetricError: as :func:`resolve`.
    """
    target = make_target(chip, exists, describe)
    found: dict[str, Metric] = {}
    for name in split_names(names):
        if name == "all":
            found.update((m.name, m) for m in _available(name_tables.events().values(), target, {}))
        elif name in name_tables.events():
            found.setdefault(name, from_entry(name_tables.events()[name], target))
        elif name in name_tables.metrics():
            raise MetricError(f"{name} is a metric, not an event", hint=f"metrics=[{name!r}], or -m {name}")
        else:
            raise unknown(name, "event", [*name_tables.events(), "all"])
    return list(found.values())


def split_names(names: str | Iterable[str]) -> list[str]:
    """Names as given, or from a text with commas; empty parts are left out.

    Raises:
        MetricError: something that is no text, no name at all, or more than 4096.
    """
    given = names.split(",") if isinstance(names, str) else list(names)
    if not all(isinstance(name, str) for name in given):
        raise MetricError("metrics are named by text", hint='metrics=["ipc", "dram_read_throughput"]')
    stripped = [name.strip() for name in given if name.strip()]
    if not stripped:
        raise MetricError("no metric is named", hint="'cuptiprof metrics' lists them.")
    if len(stripped) > MAX_NAMES:
        raise MetricError(f"{len(stripped)} metrics are more than the {MAX_NAMES} that can be asked for")
    return stripped
