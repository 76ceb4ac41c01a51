"""A folder of results, one file a run, as times by commit."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cuptiprof.bench.plots.trend_plot import plot_trends
from cuptiprof.bench.results.history_table import history_report
from cuptiprof.bench.results.row import Row
from cuptiprof.bench.results.store import Path_, read_results
from cuptiprof.bench.results.trends import PointRuns, PointTrend, Reading, find_trends
from cuptiprof.errors import ResultError
from cuptiprof.report.model import Report
from cuptiprof.stats.change_points import ALPHA
from cuptiprof.stats.verdict import THRESHOLD

if TYPE_CHECKING:
    import pandas as pd

SUFFIX = ".jsonl"
MAX_FILES = 10_000
MAX_RUNS = 200
"""of a point, the newest: looking for steps takes time with their square"""
MAX_TIME = 1e11  # Unix s


@dataclass(frozen=True)
class History:
    """What a folder of results says of each point since when.

    Attributes:
        trends: of each point, apart for each GPU, driver, strategy and state of the L2.
        notes: what a reader must know of the files.
    """

    trends: tuple[PointTrend, ...]
    notes: tuple[str, ...] = ()

    def report(self, *, units: str = "auto") -> Report:
        """The table: :func:`cuptiprof.bench.results.history_table.history_report`."""
        return history_report(self.trends, self.notes, units=units)

    def to_pandas(self) -> pd.DataFrame:
        """The table as a pandas DataFrame: a row for the runs between two steps of a point, ns.

        Raises:
            ResultError: pandas is not installed.
        """
        return self.report().to_pandas()

    def plot(self, path: Path_) -> None:
        """Draw each point over its runs: :func:`cuptiprof.bench.plots.trend_plot.plot_trends`."""
        plot_trends(self.trends, path)

    def __str__(self) -> str:
        return str(self.report())

    def _repr_html_(self) -> str:
        return self.report()._repr_html_()


def read_history(folder: Path_, *, threshold: float = THRESHOLD, alpha: float = ALPHA) -> History:
    """Times by commit of the ``*.jsonl`` files of a folder, one file a run.

    Runs are in the order of their commits' dates, runs of one commit in that of their times.

    Args:
        threshold: relative difference that does not matter: a smaller step is none.
        alpha: how often a step may be found in a folder without any.

    Raises:
        ResultError: no folder, or no results in it.
    """
    points, notes = gather(folder)
    return History(tuple(find_trends(points, threshold, alpha)), tuple(notes))


def file_of_run(folder: Path_, environment: Mapping[str, Any]) -> Path:
    """Where in the folder the results of a run go: named by its time and its commit."""
    when = datetime.fromtimestamp(_time(environment.get("time")), timezone.utc).strftime("%Y%m%dT%H%M%S")
    commit = re.sub(r"[^0-9a-f]", "", str(environment.get("commit") or ""))[:12] or "no-commit"
    changed = "-changed" if environment.get("changed") else ""
    return Path(folder, f"{when}-{commit}{changed}-{os.getpid()}{SUFFIX}")


def gather(folder: Path_) -> tuple[list[PointRuns], list[str]]:
    """Each point with its runs, and what a reader must know of the files.

    Raises:
        ResultError: no folder, or no results in it.
    """
    found: dict[str, list[tuple[tuple[float, float, str], Reading]]] = {}
    points: dict[str, PointRuns] = {}
    notes: list[str] = []
    for name, row in _rows(folder, notes):
        reading, run = _reading(row)
        conditions = conditions_of(row)
        key = json.dumps([row.key, conditions], sort_keys=True)
        points[key] = PointRuns(row.benchmark, row.params, conditions, ())
        found.setdefault(key, []).append(((reading.when, run, name), reading))
    if not found:
        raise ResultError(
            f"{folder} has no results", hint=f"`cuptiprof bench FILE.py --json {folder}` stores a run there"
        )
    out = []
    for key, members in found.items():
        members.sort(key=lambda m: m[0])
        if (cut := len(members) - MAX_RUNS) > 0:
            notes.append(f"{points[key].title}: its {cut} oldest runs are left out")
        out.append(replace(points[key], readings=tuple(r for _, r in members[-MAX_RUNS:])))
    return out, notes


def conditions_of(row: Row) -> dict[str, str]:
    """What has to be equal for times to be of one series."""
    assert row.measurement is not None
    e = row.measurement.environment
    chip = str(e.get("chip") or e.get("cpu") or "unknown")[:80]
    return {
        "chip": f"{chip} (simulated)" if e.get("simulated") else chip,
        "driver": str(e.get("driver_version") or "-")[:80],
        "strategy": row.measurement.strategy,
        "l2": row.measurement.l2,
    }


def _rows(folder: Path_, notes: list[str]) -> Iterator[tuple[str, Row]]:
    """(name of the file, row) of all that was measured; the samples of one file at a time are in memory."""
    try:
        files = sorted(p for p in Path(folder).iterdir() if p.suffix == SUFFIX)
    except OSError as e:
        raise ResultError(f"cannot read {folder}: {e.strerror}") from None
    if len(files) > MAX_FILES:
        raise ResultError(f"{folder} has {len(files):,} results", hint=f"at most {MAX_FILES:,} are read")
    for path in files:
        try:
            rows = read_results(path).rows
        except ResultError as e:
            notes.append(f"left out: {e.message}")
            continue
        for row in rows:
            m = row.measurement
            if m is not None and math.isfinite(m.median) and m.median > 0:
                yield path.name, row


def _reading(row: Row) -> tuple[Reading, float]:
    """And the time of the run."""
    assert row.measurement is not None
    e = row.measurement.environment
    run = _time(e.get("time"))
    when = _time(e.get("commit_time")) or run
    return Reading(row.measurement.median, str(e.get("commit") or ""), bool(e.get("changed")), when, e), run


def _time(value: Any) -> float:
    """A time of a file; 0 where it is none."""
    ok = isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value < MAX_TIME
    return float(value) if ok else 0.0
