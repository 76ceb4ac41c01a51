"""One page a measured kernel, by section, in the manner of Nsight Compute's details page: only what was collected."""

from __future__ import annotations

import csv
import functools
from collections.abc import Mapping
from importlib import resources
from typing import Any

import numpy as np

from cuptiprof.analysis.counter_values.kernel_counters import Float64
from cuptiprof.analysis.kernel_rules.launch_facts import LaunchFacts, launch_facts
from cuptiprof.analysis.kernel_rules.rule_message import Message
from cuptiprof.analysis.kernel_rules.rules import evaluate
from cuptiprof.analysis.work.counted import NOTHING, device_label, device_labels, range_names, units
from cuptiprof.data.enums import REGION, SAMPLE
from cuptiprof.data.result import Result
from cuptiprof.report.model import Column, Heading, View, left_out

OTHER = "Other metrics"

_COLUMNS = (
    Column("id", "Range", "count", human=False),
    Column("page", "Kernel", "text", machine=False),
    Column("kernel", "Kernel", "text", human=False),
    Column("section", "Section", "label"),
    Column("label", "Metric Name", "text", min_width=40),
    Column("metric", "Metric", "label", human=False),
    Column("shown_unit", "Metric Unit", "metric_unit", machine=False, value_key="value"),
    Column("unit", "Unit", "label", human=False),
    Column("value", "Metric Value", "metric_number", unit_key="unit", min_width=12),
    Column("rule", "Rule", "label", human=False),
    Column("severity", "Severity", "label", human=False),
    Column("speedup", "Speedup", "percent", human=False),
    Column("message", "Message", "text"),
)
_HEADINGS = (Heading("page"), Heading("section", "Section: {}"))


@functools.lru_cache(maxsize=1)
def section_labels() -> Mapping[str, tuple[str, str]]:
    """Metric -> (section, label), in the order in which a page shows them."""
    text = resources.files("cuptiprof").joinpath("metrics/lists/section_metrics.csv").read_text(encoding="utf-8")
    return {row["metric"]: (row["section"], row["label"]) for row in csv.DictReader(text.splitlines())}


@functools.lru_cache(maxsize=1)
def section_order() -> Mapping[str, int]:
    """Section -> its place on a page."""
    sections = list(dict.fromkeys(section for section, _ in section_labels().values()))
    sections.insert(sections.index("Occupancy"), "LaunchStats")  # nothing in it is a counter
    return {section: i for i, section in enumerate(dict.fromkeys(sections))}


@functools.lru_cache(maxsize=1)
def label_order() -> Mapping[str, int]:
    """Metric -> its place in the list of all."""
    return {metric: i for i, metric in enumerate(section_labels())}


def view(result: Result, *, demangle: bool = True, limit: int | None = None) -> View:
    """Metric label, unit and value by section, and what the rules say. ``limit`` is pages."""
    ranges, counters = result.metric_ranges, result.counters
    pages = np.flatnonzero(ranges["kind"] != SAMPLE)
    shown = pages[:limit]
    names, devices = range_names(ranges, demangle), device_labels(result)
    unit_of, columns = units(result), {name: counters[name] for name in counters}
    placed = sorted((_place(result, name), i, name) for i, name in enumerate(counters))
    facts = launch_facts(result)
    data: dict[str, list[Any]] = {column.key: [] for column in _COLUMNS}
    for row in shown.tolist():
        kernel = names.names[int(names.ids[row])]
        # The number keeps launches that look alike on pages of their own.
        page = f"[{int(ranges['id'][row])}] " + _title(
            result, row, kernel, device_label(devices, int(ranges["device"][row]))
        )
        lines = [
            (section, label, name, unit_of[name], float(columns[name][row]))
            for (_, _, section, label), _, name in placed
            if not np.isnan(columns[name][row])
        ]
        is_kernel = int(ranges["kind"][row]) != REGION
        lines += _launch_lines(facts, row) if is_kernel else []
        said = evaluate(_facts(facts, columns, row)) if is_kernel else []
        _add_page(data, int(ranges["id"][row]), page, kernel, lines, said)
    return View(
        columns=_COLUMNS,
        data=data,
        headings=_HEADINGS,
        message_key="message",
        notes={"": NOTHING},
        footers=left_out(len(pages), len(shown), "pages"),
    )


def _place(result: Result, metric: str) -> tuple[int, int, str, str]:
    """(place of the section, place in it, section, label) of a metric; one that no section has goes where what it is computed from goes."""
    table, order = section_labels(), section_order()
    if metric in table:
        section, label = table[metric]
        return order[section], label_order()[metric], section, label
    for name in result.counters.info(metric).inputs:
        if name in table:
            section = table[name][0]
            return order[section], len(table), section, metric
    return len(order), 0, OTHER, metric


def _title(result: Result, row: int, name: str, device: str) -> str:
    ranges = result.metric_ranges
    if int(ranges["kind"][row]) == REGION:
        return f"Region {name}, Device {device}, {int(ranges['occurrences'][row])} passes"
    grid, block = (
        "(" + ", ".join(str(int(ranges[f"{what}_{axis}"][row])) for axis in "xyz") + ")" for what in ("grid", "block")
    )
    region = ranges.strings[int(ranges.codes("region")[row])]
    where = [f"Context {int(ranges['context'][row])}", f"Stream {int(ranges['stream'][row])}", f"Device {device}"]
    count = int(ranges["occurrences"][row])
    where += [f"Region {region}"] * bool(region) + [f"{count} launches"] * (count > 1)
    return f"{name} {grid}x{block}, {', '.join(where)}"


def _launch_lines(facts: LaunchFacts, row: int) -> list[tuple[str, str, str, str, float]]:
    return [
        (section, label, "", unit, float(values[row]))
        for section, entries in (("LaunchStats", facts.launch), ("Occupancy", facts.occupancy))
        for label, (unit, values) in entries.items()
        if not np.isnan(values[row])
    ]


def _facts(facts: LaunchFacts, columns: Mapping[str, Float64], row: int) -> dict[str, float]:
    found = {name: float(values[row]) for name, values in (*columns.items(), *facts.facts.items())}
    return {name: value for name, value in found.items() if not np.isnan(value)}


def _add_page(
    data: dict[str, list[Any]],
    number: int,
    page: str,
    kernel: str,
    lines: list[tuple[str, str, str, str, float]],
    said: list[Message],
) -> None:
    present = {*(line[0] for line in lines), *(message.section for message in said)}
    for section in sorted(present, key=lambda section: section_order().get(section, len(section_order()))):
        for _, label, metric, unit, value in (line for line in lines if line[0] == section):
            _append(data, id=number, page=page, kernel=kernel, section=section, label=label, metric=metric or None,
                    shown_unit=unit, unit=unit, value=value)  # fmt: skip
        for message in (message for message in said if message.section == section):
            gain = "" if np.isnan(message.speedup) else f" (estimated speed-up of this kernel: {message.speedup:.1f} %)"
            _append(data, id=number, page=page, kernel=kernel, section=section, rule=message.rule,
                    severity=message.severity, speedup=message.speedup,
                    message=f"{message.severity}  {message.rule}: {message.text}{gain}")  # fmt: skip


def _append(data: dict[str, list[Any]], **values: Any) -> None:
    for key, column in data.items():
        column.append(values.get(key))
