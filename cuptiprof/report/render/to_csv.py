"""CSV by RFC 4180: one header line, raw values, names in quotes.

Lines that begin with ``#`` come before the header only where the data need it said (a simulated device, losses);
times are whole or fractional ns, or the unit asked for (the header says which).
"""

from __future__ import annotations

import csv
import io
from typing import Any

from cuptiprof.report.model import Column, TableModel
from cuptiprof.report.names import printable
from cuptiprof.report.units import TimeUnit, is_missing, ns_per

# A spreadsheet runs a cell that begins with one of these as a formula. No C++ name begins so, hostile ones may.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def to_csv(model: TableModel, units: TimeUnit = "auto") -> str:
    out = io.StringIO()
    for line in _remarks(model):
        out.write(f"# {line}\r\n")
    writer = csv.writer(out, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\r\n")
    header: list[str] = []
    values: list[list[Any]] = []
    for column in model.columns:
        if not column.machine:
            continue
        for name, cells in _raw(column, model, units):
            header.append(name)
            values.append(cells)
    # The header without needless quotes: some readers take "name" with the quotes as the name.
    csv.writer(out, lineterminator="\r\n").writerow(header)
    writer.writerows(zip(*values, strict=True))
    return out.getvalue()


def _remarks(model: TableModel) -> list[str]:
    device = [line for line in model.preamble if line.startswith("Device: ")]
    return [*device, *([model.losses_line] if model.losses_line else [])]


def _raw(column: Column, model: TableModel, units: TimeUnit) -> list[tuple[str, list[Any]]]:
    values = model.data[column.key]
    if column.kind == "dim3":
        return [
            (f"{column.key}_{axis}", [_Blank if value is None else value[i] for value in values])
            for i, axis in enumerate("xyz")
        ]
    if column.kind in ("text", "label"):
        return [(column.key, [_Blank if value is None else safe_text(str(value)) for value in values])]
    name = column.key
    cells = [_Blank if is_missing(value) else value for value in values]
    if units not in ("auto", "ns") and column.kind in ("duration", "instant"):
        scale = ns_per(units)
        name = f"{name.removesuffix('_ns')}_{units}"
        cells = [value if value is _Blank else _exact(value, scale) for value in cells]
    return [(name, cells)]


def _exact(ns: float, scale: int) -> float:
    """``ns`` in a larger unit; the nearest float, which prints as the exact decimal for any run shorter than weeks."""
    return ns / scale


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
