"""Tables with a row a point: columns as they are added, and the report around them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from cuptiprof.bench.results.row import Row
from cuptiprof.report.model import Column, Kind, Report, View

MAX_LINES = 20  # of a list below a table


class PointTable:
    """Columns as they are added; a name that is taken gets a number."""

    def __init__(self) -> None:
        self.columns: list[Column] = []
        self.data: dict[str, Sequence[Any]] = {}

    def add(self, key: str, title: str, kind: Kind, values: Sequence[Any], **more: Any) -> None:
        unique, number = key, 2
        while unique in self.data:
            unique, number = f"{key}_{number}", number + 1
        self.columns.append(Column(unique, title, kind, **more))
        self.data[unique] = [_finite(v) for v in values]

    def add_if_any(self, key: str, title: str, kind: Kind, values: Sequence[Any], **more: Any) -> None:
        if any(_finite(v) is not None for v in values):
            self.add(key, title, kind, values, **more)

    def add_params(self, rows: Sequence[Row]) -> None:
        """The benchmark, and a column for each parameter that any has."""
        self.add("benchmark", "Benchmark", "text", [row.benchmark for row in rows])
        for name in dict.fromkeys(n for row in rows for n in row.params):
            values = [row.params.get(name) for row in rows]
            numbers = all(v is None or (isinstance(v, (int, float)) and not isinstance(v, bool)) for v in values)
            self.add(name, name, "count" if numbers else "label", values, may_cut=not numbers)


def table_report(
    title: str,
    header: Iterable[str],
    table: PointTable,
    footers: Iterable[str],
    units: str,
    environment: Mapping[str, Any],
) -> Report:
    """The report of a table."""
    content = View(tuple(table.columns), table.data, footers=tuple(footers), notes={"": "no points"})
    metadata = {k: v for k, v in environment.items() if isinstance(v, (str, bool, int))}
    return Report("bench", title, tuple(header), content, {}, "", units=units, metadata=metadata)


def run_header(environment: Mapping[str, Any]) -> list[str]:
    """The GPU of a run and its driver, as a heading says them."""
    chip, driver = (str(environment.get(k, "unknown"))[:80] for k in ("chip", "driver_version"))
    if environment.get("simulated"):
        return [f"SIMULATED device (chip {chip}): not measured on a GPU"]
    if not environment.get("chip", "unknown"):
        return [f"host: {str(environment.get('cpu') or 'unknown')[:80]}"]
    commit = str(environment.get("commit") or "")[:12]
    return [f"GPU: {chip}, driver {driver}" + (f", commit {commit}" if commit else "")]


def _finite(value: Any) -> Any:
    """None for numbers that no format can show."""
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    return value
