"""The table that every view builds and every format renders: raw values by column, and what they mean.

A view never formats a number and a renderer never computes one, so that all formats of one report agree.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    import pandas as pd

Kind = Literal[
    "text",
    "label",
    "percent",
    "duration",
    "instant",
    "bytes",
    "byte_rate",
    "flop",
    "flop_rate",
    "count",
    "dims",
    "metric",
    "metric_number",
    "metric_unit",
]
"""Meaning of a column's raw values; a missing value is None (or NaN) in every kind.

text       names (any length; terminals cut them)            label    short text, never cut
percent    0..100                                           duration, instant   ns; instants relative to ``origin_ns``
bytes      bytes      byte_rate  bytes/s                    flop, flop_rate     operations, operations/s
count      integers   dims       (x, y, z)
metric     a counter's value in the unit of its row or column, shown as nvprof does   metric_number   without its unit
metric_unit   the unit in which the row's ``metric_number`` is shown
"""


@dataclass(frozen=True)
class Column:
    """One column: ``key`` names it in JSON and CSV, ``title`` in tables for people.

    ``human`` and ``machine`` say where it is shown; ``min_width`` is that of the plain-text table;
    ``suffix_key`` names a column whose values follow in brackets in the plain-text table (nvprof's ``name [42]``).
    ``unit`` is that of a metric, ``unit_key`` the column with the unit of each row; ``value_key`` is for a
    "metric_unit" the column with the values.

    On a terminal too narrow for all columns those of the highest ``rank`` are left out first, those of rank 0 never;
    ``may_cut``: it is cut as names are; ``is_function``: its names are shortened as those of C++ functions.
    """

    key: str
    title: str
    kind: Kind
    human: bool = True
    machine: bool = True
    min_width: int = 0
    suffix_key: str = ""
    unit: str = ""
    unit_key: str = ""
    value_key: str = ""
    may_cut: bool = False
    rank: int = 0
    is_function: bool = False


_IN_A_REPL = 60
"""rows of a report that is typed, not printed"""


@dataclass(frozen=True)
class Heading:
    """A line above the rows that share a value: ``template`` with the value of column ``key`` in place of ``{}``."""

    key: str
    template: str = "{}"

    def text(self, value: Any) -> str:
        return self.template.replace("{}", str(value))


@dataclass(frozen=True)
class View:
    """What a view gives: columns, values, and what is to be said of them.

    Attributes:
        columns: in the order of display.
        data: column key -> values, all of one length.
        footers: lines after the table (legends, rows left out).
        notes: block -> what to say if it has no rows ("" stands for the whole table).
        block_key: column that groups the rows into blocks; empty: none.
        depth_key: column with the depth of a row in a tree, by which text columns are indented; empty: none.
        headings: columns shown as lines above their rows, outermost first, instead of as columns.
        message_key: column of sentences; a row that has one is shown as that sentence, not as cells. Empty: none.
        facts: further members of the JSON object.
    """

    columns: tuple[Column, ...]
    data: Mapping[str, Sequence[Any]]
    footers: tuple[str, ...] = ()
    notes: Mapping[str, str] = field(default_factory=dict)
    block_key: str = ""
    depth_key: str = ""
    headings: tuple[Heading, ...] = ()
    message_key: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.data[self.columns[0].key])

    def head(self, rows: int) -> tuple[View, int]:
        """The first rows, and how many more there are."""
        if len(self) <= rows:
            return self, 0
        return replace(self, data={key: values[:rows] for key, values in self.data.items()}), len(self) - rows


@dataclass(frozen=True, repr=False)
class Report:
    """A finished view. ``print(report)`` shows it, on a terminal in its width; ``report.to("markdown")`` and others give a
    str; a notebook shows a table.

    Attributes:
        view: name of the view, as in ``report.VIEWS``.
        title: one line.
        header: where the data come from; says so if they are simulated.
        content: the table.
        losses, losses_line: what was lost, by counter and in one line (empty: nothing).
        units: of times, for people and in CSV: "auto", "s", "ms", "us", "ns".
        metadata: what a program wants to know of the run.
    """

    view: str
    title: str
    header: tuple[str, ...]
    content: View
    losses: Mapping[str, int]
    losses_line: str
    units: str = "auto"
    metadata: Mapping[str, Any] = field(default_factory=dict)

    @property
    def rows(self) -> list[dict[str, Any]]:
        """All rows as dicts of raw values by column key: ns, bytes, percent; a missing value is None."""
        from cuptiprof.report.render.to_json import plain_rows

        return plain_rows(self.content)

    def to_pandas(self) -> pd.DataFrame:
        """All rows as a pandas DataFrame with the columns of JSON and CSV: ns, bytes, percent; a missing value is NaN or None.

        Raises:
            ResultError: pandas is not installed.
        """
        from cuptiprof.report.render.to_pandas import to_pandas

        return to_pandas(self)

    def to(self, format: str = "text", *, width: int | None = None) -> str:
        """The report as "text", "rich" (for a terminal, ``width`` cells wide), "markdown", "csv" or "json".
        Text, Markdown, CSV and JSON are never cut.

        Raises:
            ResultError: an unknown format.
        """
        from cuptiprof.report.render import render

        return render(self, format, width=width)

    def __str__(self) -> str:
        from cuptiprof.report.render import render_for

        return render_for(self, sys.stdout, color=False)

    def __repr__(self) -> str:
        view, more = self.content.head(_IN_A_REPL)
        note = (f"... and {more:,} more rows; print() shows all",) if more else ()
        return str(replace(self, content=replace(view, footers=(*note, *view.footers)))).rstrip("\n")

    def _repr_html_(self) -> str:
        from cuptiprof.report.render.to_html import to_html

        return to_html(self)


def nothing(what: str, rejected: int) -> str:
    """The line in place of a table without rows: nothing was recorded, or a filter kept none of it."""
    if not rejected:
        return f"No {what} were recorded."
    kernels = "the one kernel that came" if rejected == 1 else f"all {rejected:,} kernels that came"
    return f"No {what} were kept: the filter left out {kernels}."


def left_out(total: int, shown: int, what: str = "rows") -> tuple[str, ...]:
    """The line that says that a limit cut something off."""
    return (f"... and {total - shown} more {what}",) if shown < total else ()
