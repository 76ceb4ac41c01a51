"""Two tools' numbers side by side: rows with both values, what may differ, and whether they agree."""

from __future__ import annotations

import csv
import io
import math
import re
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

TIME_TOLERANCE = 0.01
COUNT_TOLERANCE = 0.02
EXACT = ("inst_executed", "ops_path")
"""Parts of the names of counts of instructions and operations, which the program alone decides: these must be equal."""


@dataclass(frozen=True)
class Row:
    """One number of one kernel from both tools; `tolerance` is relative, 0: they must be equal."""

    part: str
    kernel: str
    what: str
    ours: float
    theirs: float
    tolerance: float

    @property
    def difference(self) -> float:
        """Relative to the other tool's value; infinite where that is 0 and ours is not."""
        if self.ours == self.theirs:
            return 0.0
        return abs(self.ours - self.theirs) / abs(self.theirs) if self.theirs else float("inf")

    @property
    def agrees(self) -> bool:
        return self.difference <= self.tolerance

    def as_dict(self) -> dict[str, Any]:
        return asdict(self) | {"difference": round(self.difference, 6), "agrees": self.agrees}


@dataclass(frozen=True)
class Kernel:
    """One execution as a tool reports it; times in ns."""

    name: str
    start: int
    duration: int
    stream: int
    grid: tuple[int, int, int]


def key_of(name: str) -> str:
    """Two demanglers space their output differently."""
    return re.sub(r"\s+", "", name)


def compare_kernels(part: str, ours: Sequence[Kernel], theirs: Sequence[Kernel], tolerance: float = TIME_TOLERANCE) -> list[Row]:  # fmt: skip
    """Counts, median durations, streams and grids by kernel name. A name that only one has is a count against 0."""
    groups: dict[str, tuple[list[Kernel], list[Kernel]]] = {}
    for side, kernels in enumerate((ours, theirs)):
        for k in kernels:
            groups.setdefault(key_of(k.name), ([], []))[side].append(k)
    rows = []
    for a, b in groups.values():
        name = (b or a)[0].name[:120]
        rows.append(Row(part, name, "count", len(a), len(b), 0))
        if not a or not b:
            continue
        rows.append(Row(part, name, "duration, median (ns)", statistics.median(k.duration for k in a), statistics.median(k.duration for k in b), tolerance))  # fmt: skip
        for what, of in (("different streams", lambda k: k.stream), ("different grids", lambda k: k.grid)):
            # Grids must be the same ones; of streams, whose numbers are each run's own, there must be as many.
            mine, other = {of(k) for k in a}, {of(k) for k in b}
            same = mine == other if what.endswith("grids") else len(mine) == len(other)
            rows.append(Row(part, name, what, len(mine), len(other) if same else -len(other), 0))
    return rows


def compare_each(part: str, ours: Sequence[Kernel], theirs: Sequence[Kernel], slack_ns: float) -> list[Row]:
    """The same execution in both, kernel by kernel in order of start: names, grids, streams equal, times within `slack_ns`."""
    rows = [Row(part, "(all)", "kernels", len(ours), len(theirs), 0)]

    def in_order(kernels: Sequence[Kernel]) -> list[Kernel]:
        return sorted(kernels, key=lambda k: (k.start, k.stream, k.name))

    pairs = list(zip(in_order(ours), in_order(theirs), strict=False))
    same = {
        "names equal": sum(key_of(a.name) == key_of(b.name) for a, b in pairs),
        "grids equal": sum(a.grid == b.grid for a, b in pairs),
        "streams equal": sum(a.stream == b.stream for a, b in pairs),
        "starts equal": sum(abs(a.start - b.start) <= slack_ns for a, b in pairs),
        "durations equal": sum(abs(a.duration - b.duration) <= slack_ns for a, b in pairs),
    }
    return rows + [Row(part, "(all)", what, count, len(pairs), 0) for what, count in same.items()]


def tolerance_of(metric: str) -> float:
    """0 for what the program alone decides, else 2 %."""
    return 0.0 if any(part in metric for part in EXACT) and metric.endswith(".sum") else COUNT_TOLERANCE


def read_ncu(text: str, metrics: Iterable[str]) -> list[tuple[str, dict[str, float]]]:
    """(kernel name, {metric: value}) of each launch in ``ncu --csv --page raw --print-units base``.

    A value that ncu could not give ("n/a", an error in words) is left out.

    Raises:
        ValueError: no such table in the text, or a metric that is not a column of it.
    """
    lines = text.splitlines()
    start = next((i for i, line in enumerate(lines) if line.startswith('"ID"')), None)
    if start is None:
        raise ValueError("no table in what ncu printed: " + " ".join(lines[-2:])[:200])
    rows = list(csv.DictReader(io.StringIO("\n".join(lines[start:]))))
    wanted = list(metrics)
    out = []
    for row in rows:
        if not (row.get("ID") or "").strip():  # the line of units
            continue
        missing = [m for m in ("Kernel Name", *wanted) if m not in row]
        if missing:
            raise ValueError(f"ncu has no column {missing[0]!r}")
        values = {m: ncu_number(row[m] or "") for m in wanted}
        out.append((row["Kernel Name"], {m: v for m, v in values.items() if v is not None}))
    return out


def ncu_number(text: str) -> float | None:
    """A cell of ncu's table, with its commas between thousands; None where there is no finite number."""
    try:
        value = float(text.replace(",", ""))
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def compare_metrics(ours: Sequence[tuple[str, Mapping[str, float]]], theirs: Sequence[tuple[str, Mapping[str, float]]]) -> list[Row]:  # fmt: skip
    """Launch by launch in order, metric by metric: the median over a name's launches is compared."""
    rows = [Row("ncu, step", "(all)", "launches", len(ours), len(theirs), 0)]
    values: dict[tuple[str, str], tuple[list[float], list[float]]] = {}
    lacking = 0
    for (_, mine), (name, other) in zip(ours, theirs, strict=False):
        lacking += len(mine.keys() ^ other.keys())
        for metric, value in other.items():
            if metric not in mine:
                continue
            pair = values.setdefault((name[:120], metric), ([], []))
            pair[0].append(mine[metric])
            pair[1].append(value)
    rows.append(Row("ncu, step", "(all)", "values that only one tool has", lacking, 0, 0))
    for (name, metric), (a, b) in values.items():
        rows.append(Row("ncu, step", name, metric, statistics.median(a), statistics.median(b), tolerance_of(metric)))
    return rows
