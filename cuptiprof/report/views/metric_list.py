"""Tables of the catalogue: names for a list, everything about a few, and the perfworks names of a chip."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from cuptiprof import _core
from cuptiprof.data.chips import CHIPS
from cuptiprof.errors import MetricError
from cuptiprof.metrics import name_tables
from cuptiprof.metrics.library import count_passes
from cuptiprof.metrics.lookup import from_entry
from cuptiprof.metrics.metric import Metric
from cuptiprof.metrics.metric_sections import set_names
from cuptiprof.metrics.name_tables import Entry
from cuptiprof.metrics.target import Target
from cuptiprof.report.model import Column, View

_NAME = Column("name", "Name", "text")
_UNIT = Column("unit", "Unit", "label")
_STATUS = Column("status", "Status", "label")
_DESCRIPTION = Column("description", "Description", "text")
_CATEGORY = Column("category", "Category", "label", human=False)
_KIND = Column("kind", "Kind", "label", human=False)
_PASSES = Column("passes", "Passes", "count")
_EXPRESSION = Column("expression", "Expression", "text")
_INPUTS = Column("inputs", "Inputs", "text", human=False)
_CHIPS = Column("chips", "Chips", "text", human=False)
_NOTES = Column("notes", "Notes", "text", human=False)


def contains(search: str | None, *texts: str) -> bool:
    """Whether any text has the word in it, whatever its case."""
    return not search or any(search.lower() in text.lower() for text in texts)


def list_entries(entries: Iterable[Entry], target: Target | None, search: str | None) -> View:
    """One row an entry: name, status, unit, description; with a chip only what it has, as it has it."""
    rows, lacking = [], 0
    for entry in entries:
        if not contains(search, entry.name, entry.description, entry.expression, entry.category):
            continue
        expression = entry.expression
        if target is not None:
            try:
                expression = from_entry(entry, target).expression
            except MetricError:
                lacking += 1
                continue
        rows.append((entry, expression))
    columns: tuple[Column, ...]
    columns = (_NAME, _STATUS, _UNIT, _DESCRIPTION, _CATEGORY, _KIND, _EXPRESSION, _CHIPS, _NOTES)
    data: dict[str, list[Any]] = {c.key: [getattr(entry, c.key) for entry, _ in rows] for c in columns}
    data["expression"] = [expression for _, expression in rows]
    data["chips"] = [" ".join(name_tables.names_of(entry.chips, CHIPS)) for entry, _ in rows]
    columns = tuple(_hidden(c) if c is _EXPRESSION else c for c in columns)
    footers = (f"{lacking} more that {target.chip} lacks or that have no counter",) if target and lacking else ()
    return View(columns, data, footers, _nothing(search))


def describe_metrics(
    metrics: Sequence[Metric],
    chips: Mapping[str, str],
    planner: _core.MetricPlanner | None = None,
    dropped: Mapping[str, str] | None = None,
) -> View:
    """Everything about some metrics; with a planner the passes of each alone and of all together.

    Args:
        metrics: on one chip, or as the catalogue has them.
        chips: name -> chips that have it, with blanks between; a name may be missing.
        planner: of the chip.
        dropped: name -> why a preset, section or set goes without it.
    """
    footers: list[str] = []
    facts: dict[str, Any] = {}
    for metric in metrics:
        if metric.notes and metric.status != "perfworks":
            footers.append(f"{metric.name}: {metric.notes}")
    everywhere = " ".join(CHIPS)
    for metric in metrics:
        if 0 < len(chips.get(metric.name, "")) < len(everywhere):
            footers.append(f"{metric.name} is on: {chips[metric.name]}")
    for name, reason in (dropped or {}).items():
        footers.append(f"without {name}: {reason}")
    data: dict[str, list[Any]] = {
        "name": [m.name for m in metrics],
        "status": [m.status for m in metrics],
        "unit": [m.unit for m in metrics],
        "expression": [m.expression for m in metrics],
        "description": [m.description for m in metrics],
        "category": [m.category for m in metrics],
        "kind": [m.kind for m in metrics],
        "inputs": [" ".join(m.inputs) if m.expression else "" for m in metrics],
        "chips": [chips.get(m.name, "") for m in metrics],
        "notes": [m.notes for m in metrics],
    }
    columns = [_NAME, _STATUS, _UNIT, _EXPRESSION, _DESCRIPTION, _CATEGORY, _KIND, _INPUTS, _CHIPS, _NOTES]
    if planner is not None and metrics:
        columns.insert(3, _PASSES)
        data["passes"] = [count_passes(planner, m.inputs) for m in metrics]
        groups = planner.plan(list(dict.fromkeys(name for m in metrics for name in m.inputs)))
        total = sum(group.passes for group in groups)
        parts = ", ".join(f"{len(g.metrics)} perfworks metrics in {_times(g.passes)}" for g in groups)
        footers.insert(0, f"Together: {_times(total)} ({parts})")
        facts["passes_together"] = total
        facts["configurations"] = [{"passes": g.passes, "metrics": list(g.metrics)} for g in groups]
    if dropped:
        facts["dropped"] = dict(dropped)
    return View(tuple(columns), data, tuple(footers), {"": "Nothing is left to count."}, facts=facts)


def list_base_names(planner: _core.MetricPlanner, search: str | None) -> View:
    """Perfworks base names of a chip: type, unit of hardware, description."""
    rows = []
    for kind in ("counter", "ratio", "throughput"):
        for name in planner.base_metrics(kind):
            found = planner.properties(name) or {}
            if contains(search, name, str(found.get("description", ""))):
                rows.append((name, kind, str(found.get("hw_unit", "")), str(found.get("description", ""))))
    columns = (_NAME, Column("kind", "Type", "label"), Column("hw_unit", "HW unit", "label"), _DESCRIPTION)
    data = {c.key: [row[i] for row in rows] for i, c in enumerate(columns)}
    rollups = "roll-ups: counter .sum .avg .min .max, ratio .ratio .pct, throughput .avg.pct_of_peak_sustained_elapsed"
    return View(columns, data, (f"{len(rows)} base names; {rollups}",), _nothing(search))


def without_chip(entry: Entry) -> Metric:
    """An entry as a metric of no chip in particular; its expression may be empty."""
    return Metric(
        entry.name,
        entry.description,
        entry.unit,
        entry.expression,
        entry.status,
        entry.kind,
        entry.category,
        entry.notes,
    )


def _hidden(column: Column) -> Column:
    return Column(column.key, column.title, column.kind, human=False)


def _nothing(search: str | None) -> dict[str, str]:
    return {"": f"Nothing has {search!r} in it." if search else "Nothing."}


def _times(passes: int) -> str:
    return "1 pass" if passes == 1 else f"{passes} passes"


def list_presets() -> View:
    """Names that stand for several metrics: our presets, "all", and ncu's sets and sections with their options."""
    rows = [("preset", name, description) for name, (description, _) in name_tables.presets().items()]
    rows.append(("preset", "all", "Every metric of nvprof that the chip has."))
    for name in set_names():
        members = ", ".join(s.name for s in name_tables.sections().values() if name in s.sets)
        rows.append(("set", name, f"Sections {members}."))
    rows += [
        ("section", s.name, f"In the sets {', '.join(s.sets)}." if s.sets else "In no set.")
        for s in name_tables.sections().values()
    ]
    columns = (Column("kind", "Kind", "label"), _NAME, _DESCRIPTION)
    return View(columns, {c.key: [row[i] for row in rows] for i, c in enumerate(columns)})
