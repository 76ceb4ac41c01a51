"""One name to one metric: nvprof's, ours, ncu's derived ones, any perfworks name; or an error that helps."""

from __future__ import annotations

from collections.abc import Iterable

from cuptiprof.data.chips import CHIPS
from cuptiprof.errors import MetricError
from cuptiprof.metrics import name_tables
from cuptiprof.metrics.expression import parse
from cuptiprof.metrics.metric import Exists, Metric
from cuptiprof.metrics.name_tables import Entry
from cuptiprof.metrics.perfworks import (
    COUNTER_ROLLUPS,
    RATIO_ROLLUPS,
    THROUGHPUT_ROLLUPS,
    PerfworksName,
    kind_of,
    plain_unit,
    split_name,
)
from cuptiprof.metrics.target import Target
from cuptiprof.text.nearest import nearest

# Names of Nsight Compute that no counter stands behind: start of the name -> what it is instead.
_NO_COUNTERS = (
    ("launch__", "an attribute of the launch: it is in result.kernels and result.launch_configs"),
    ("device__attribute_", "an attribute of the device: it is in result.devices"),
    ("sm__maximum_warps_per_active_cycle_pct", "theoretical occupancy: cuptiprof.data.occupancy computes it from the launch"),
    ("smsp__maximum_warps_avg_per_active_cycle", "theoretical occupancy: cuptiprof.data.occupancy computes it from the launch"),
    ("derived__pct_occupancy_per_", "theoretical occupancy: cuptiprof.data.occupancy computes it from the launch"),
    ("sass__", "a count per instruction of the code (CUPTI's SASS metric API), not a hardware counter"),
    ("derived__local_spilling_", "made of counts per instruction of the code (CUPTI's SASS metric API)"),
    ("derived__shared_spilling_", "made of counts per instruction of the code (CUPTI's SASS metric API)"),
    ("smsp__pcsamp_", "made by PC sampling, which is another CUPTI API"),
    ("group:", "a group of Nsight Compute's own; CUPTI does not know it"),
    ("breakdown:", "a break-down of Nsight Compute's own; CUPTI does not know it"),
    ("warpsampling:", "made by warp sampling, which is another CUPTI API"),
    ("numa__", "a property of the machine, not a counter"),
    ("nvlink__", "a property of the machine, not a counter"),
    ("profiler__", "a setting of Nsight Compute, not a counter"),
)  # fmt: skip


def no_counter(name: str) -> str:
    """Why CUPTI cannot count a name that Nsight Compute shows; empty if nothing speaks against it."""
    return next((reason for start, reason in _NO_COUNTERS if name.startswith(start)), "")


def find_metric(name: str, target: Target) -> Metric:
    """The metric of that name on the target's chip.

    Raises:
        MetricError: unknown, has no counterpart today, the chip lacks it, or a base name without roll-up.
    """
    entry = name_tables.metrics().get(name) or name_tables.derived().get(name)
    if entry is not None:
        return from_entry(entry, target)
    reason = no_counter(name)
    if reason:
        raise MetricError(f"{name} is no counter", hint=f"It is {reason}.")
    if name.startswith("pmsampling:"):
        raise MetricError(
            f"{name!r}: the prefix is Nsight Compute's", hint=f"Ask for {name[11:]} with strategy='sample'."
        )
    parts = split_name(name)
    if parts is not None:
        return _from_perfworks(name, parts, target)
    if name in name_tables.events():
        return from_entry(name_tables.events()[name], target)
    base, dot, rollup = name.partition(".")
    parts = split_name(base)
    if dot and parts is not None:
        raise MetricError(f"{rollup[:100]!r} is no roll-up", hint=_rollup_hint(base, parts, target))
    raise unknown(name, "metric", [*name_tables.metrics(), *name_tables.presets(), "all"])


def from_entry(entry: Entry, target: Target) -> Metric:
    """An entry of the catalogue on the target's chip.

    Raises:
        MetricError: no counter stands behind it today, or not on this chip.
    """
    if not entry.expression:
        raise MetricError(f"{entry.name} has no counterpart in today's counters: {entry.notes}")
    for expression, reasons in target.expressions(entry):
        if target.exists is None:
            if not entry.available_on(target.chip):
                break
        elif not target.can_count(parse(expression).inputs):
            continue
        notes = "; ".join(n for n in (entry.notes, *(f"on {target.chip}: {r}" for r in reasons)) if n)
        return Metric(
            entry.name, entry.description, entry.unit, expression, entry.status, entry.kind, entry.category, notes
        )
    if target.exists is not None and target.chip in CHIPS and entry.available_on(target.chip):
        raise _refused(entry, target, target.exists)
    raise lacks(entry.name, target, name_tables.names_of(entry.chips, CHIPS))


def _refused(entry: Entry, target: Target, exists: Exists) -> MetricError:
    """The chip has the counters, but not in the planner's mode, or not for this library or user."""
    missing = [name for name in parse(target.expressions(entry)[0][0]).inputs if not exists(name)]
    return MetricError(
        f"{entry.name} cannot be counted here: the planner for {target.chip} has no {', '.join(missing)}",
        hint="PM sampling has fewer counters than ranges, no smsp__sass_... among them: strategy='iterate' or 'replay'.",
    )


def _from_perfworks(name: str, parts: PerfworksName, target: Target) -> Metric:
    if not parts.rollup:
        raise _needs_rollup(name, parts, target)
    if not target.can_count([name]):
        if target.chips_with is not None and (others := list(target.chips_with(name))):
            error = lacks(name, target, others)
            if renamed := _renamed(name, target):
                error.hint = f"{target.chip} has {', '.join(renamed)} instead. {error.hint}"
            raise error
        base = name[: len(name) - len(parts.rollup)]
        if any(target.can_count([base + rollup]) for rollup in _families(parts)):
            raise MetricError(f"{base} has no roll-up {parts.rollup}", hint=_rollup_hint(base, parts, target))
        raise unknown(name, f"counter of {target.chip}", _known_inputs(target), _renamed(name, target))
    found = target.describe(name) if target.describe else None
    unit = plain_unit(str(found["unit"])) if found and found.get("unit") else parts.unit
    description = str(found["description"]) if found and found.get("description") else ""
    return Metric(name, description, unit, name, "perfworks", kind_of(parts.rollup, unit), "perfworks")


def _families(parts: PerfworksName) -> list[str]:
    """First roll-up of each type of metric, the one that the name suggests first."""
    return list(dict.fromkeys((parts.rollups[0], COUNTER_ROLLUPS[0], RATIO_ROLLUPS[0], THROUGHPUT_ROLLUPS[0])))


def _needs_rollup(name: str, parts: PerfworksName, target: Target) -> MetricError:
    if target.exists is not None and not any(target.can_count([name + rollup]) for rollup in _families(parts)):
        return unknown(name, f"counter of {target.chip}", _known_inputs(target), _renamed(name, target))
    return MetricError(f"{name} is a base name and needs a roll-up", hint=_rollup_hint(name, parts, target))


def _rollup_hint(base: str, parts: PerfworksName, target: Target) -> str:
    rollups: tuple[str, ...] = parts.rollups
    if target.exists is not None:
        for family in (parts.rollups, COUNTER_ROLLUPS, RATIO_ROLLUPS, THROUGHPUT_ROLLUPS):
            rollups = tuple(rollup for rollup in family if target.can_count([base + rollup]))
            if rollups:
                break
    return f"Ask for one of {' '.join(base + rollup for rollup in rollups)}"


def _renamed(name: str, target: Target) -> list[str]:
    """What this chip calls a counter that others call ``name``."""
    return [
        name.replace(o.replace, o.replacement)
        for o in name_tables.overrides()
        if target.chip in o.chips and o.applies("", name) and not o.names
    ]


def _known_inputs(target: Target) -> list[str]:
    names: dict[str, None] = {}
    for entry in (*name_tables.metrics().values(), *name_tables.derived().values()):
        if entry.available_on(target.chip):
            for expression, _ in target.expressions(entry)[:1]:
                names.update(dict.fromkeys(parse(expression).inputs))
    for section in name_tables.sections().values():
        names.update(
            (row.metric, None) for row in section.rows if split_name(row.metric) and not no_counter(row.metric)
        )
    return [name for name in names if target.can_count([name])]


def lacks(name: str, target: Target, chips: Iterable[str]) -> MetricError:
    """The error for a metric that the chip lacks, naming the chips that have it."""
    return MetricError(f"{name} is not available on {target.chip}", hint=f"Chips that have it: {', '.join(chips)}")


def unknown(name: str, what: str, candidates: Iterable[str], first: Iterable[str] = ()) -> MetricError:
    """The error for an unknown name, with the nearest ones."""
    shown = name if len(name) <= 100 else name[:97] + "..."
    near = list(dict.fromkeys([*first, *nearest(name, candidates)]))
    hint = (
        f"Did you mean {' or '.join(near[:3])}?" if near else "'cuptiprof metrics --search WORD' lists what there is."
    )
    return MetricError(f"{shown!r} is no {what}", hint=hint)
