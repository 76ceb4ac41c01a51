"""CSV by RFC 4180: one header line, raw values, names in quotes.

Before it come lines that begin with ``#``: the title, where the data come from ("SIMULATED"), what was lost. Times are in
ns, or in the unit asked for; the header says which.
"""

from __future__ import annotations

import csv
import io
from typing import Any

from cuptiprof.report.model import Column, Report, View
from cuptiprof.text.names import printable
from cuptiprof.text.units import TimeUnit, check_time_unit, is_missing, ns_per

# A spreadsheet runs a cell that begins with one of these as a formula. No C++ name begins so, hostile ones may.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def to_csv(report: Report) -> str:
    """The report as CSV; ``pandas.read_csv(file, comment="#")`` reads it, since names are in quotes."""
    out = io.StringIO()
    for line in (report.title, *report.header, *([report.losses_line] if report.losses_line else [])):
        out.write(f"# {printable(line)}\r\n")
    view, units = report.content, check_time_unit(report.units)
    header: list[str] = []
    values: list[list[Any]] = []
    for column in view.columns:
        if column.machine:
            for name, cells in _raw(column, view, units):
                header.append(name)
                values.append(cells)
    # The header without needless quotes: some readers take "name" with the quotes as the name.
    csv.writer(out, lineterminator="\r\n").writerow(map(safe_text, header))
    csv.writer(out, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\r\n").writerows(zip(*values, strict=True))
    return out.getvalue()


def _raw(column: Column, view: View, units: TimeUnit) -> list[tuple[str, list[Any]]]:
    values = view.data[column.key]
    if column.kind == "dims":
        return [
            (f"{column.key}_{axis}", [_Blank if value is None else value[i] for value in values])
            for i, axis in enumerate("xyz")
        ]
    if column.kind in ("text", "label", "metric_unit"):
        shown = {value: _Blank if value is None else safe_text(str(value)) for value in set(values)}
        return [(column.key, [shown[value] for value in values])]
    name = column.key
    cells = values if set(map(type, values)) == {int} else [_Blank if is_missing(value) else value for value in values]
    if units not in ("auto", "ns") and column.kind in ("duration", "instant"):
        scale = ns_per(units)
        name = f"{name.removesuffix('_ns')}_{units}"
        cells = [value if value is _Blank else value / scale for value in cells]
    return [(name, list(cells))]


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
