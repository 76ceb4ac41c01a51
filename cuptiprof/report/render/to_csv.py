"""CSV by RFC 4180: one header line, raw values, names in quotes.

Before it come lines that begin with ``#``: the title, where the data come from ("SIMULATED"), what was lost. Times are in
ns, or in the unit asked for; the header says which.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from typing import Any

from cuptiprof.report.model import Column, Report
from cuptiprof.text.names import printable
from cuptiprof.text.units import TimeUnit, check_time_unit, is_missing, ns_per

_AT_ONCE = 1 << 16
"""Rows whose cells are made at a time: of a trace of millions they would take more memory than the trace."""

# A spreadsheet runs a cell that begins with one of these as a formula. No C++ name begins so, hostile ones may.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def to_csv(report: Report) -> str:
    """The report as CSV; ``pandas.read_csv(file, comment="#")`` reads it, since names are in quotes."""
    out = io.StringIO()
    for line in (report.title, *report.header, *([report.losses_line] if report.losses_line else [])):
        out.write(f"# {printable(line)}\r\n")
    view, units = report.content, check_time_unit(report.units)
    columns = [column for column in view.columns if column.machine]
    # The header without needless quotes: some readers take "name" with the quotes as the name.
    header = [safe_text(name) for column in columns for name in _names(column, units)]
    csv.writer(out, lineterminator="\r\n").writerow(header)
    writer = csv.writer(out, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\r\n")
    for first in range(0, len(view), _AT_ONCE):
        rows = slice(first, first + _AT_ONCE)
        cells = [part for column in columns for part in _cells(column, view.data[column.key][rows], units)]
        writer.writerows(zip(*cells, strict=True))
    return out.getvalue()


def _names(column: Column, units: TimeUnit) -> list[str]:
    if column.kind == "dims":
        return [f"{column.key}_{axis}" for axis in "xyz"]
    return [f"{column.key.removesuffix('_ns')}_{units}" if _is_scaled(column, units) else column.key]


def _is_scaled(column: Column, units: TimeUnit) -> bool:
    return units not in ("auto", "ns") and column.kind in ("duration", "instant")


def _cells(column: Column, values: Sequence[Any], units: TimeUnit) -> list[Sequence[Any]]:
    """The values as the writer wants them, for each of the column's names."""
    if column.kind == "dims":
        return [[_Blank if value is None else value[i] for value in values] for i in range(3)]
    if column.kind in ("text", "label", "metric_unit"):
        shown = {value: _Blank if value is None else safe_text(str(value)) for value in set(values)}
        return [[shown[value] for value in values]]
    if set(map(type, values)) != {int}:
        values = [_Blank if is_missing(value) else value for value in values]
    if _is_scaled(column, units):
        scale = ns_per(units)
        values = [value if value is _Blank else value / scale for value in values]
    return [values]


class _BlankCell(float):
    """A missing value: a number to the writer, so that it is not quoted, with no digits."""

    def __repr__(self) -> str:
        return ""

    __str__ = __repr__


_Blank = _BlankCell(0.0)


def safe_text(text: str) -> str:
    """``text`` with control characters made visible and, where a spreadsheet would run it, an apostrophe before it."""
    shown = printable(text)
    return f"'{shown}" if text.startswith(_FORMULA) else shown
