"""The table that every view builds and every format renders: raw values by column, and what they mean.

A view never formats a number and a renderer never computes one, so that all formats of one report agree.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

Kind = Literal["text", "label", "percent", "duration", "instant", "bytes", "byte_rate", "flop", "flop_rate", "count", "id", "dim3"]
"""Meaning of a column's raw values.

text       names (any length; only terminals cut them)     label    short text, never cut
percent    0..100                                           duration, instant   ns (int or float); instants on the run clock
bytes      bytes      byte_rate  bytes/s                    flop, flop_rate     operations, operations/s
count, id  integers   dim3       (x, y, z)
A missing value is None (or NaN) in every kind.
"""


@dataclass(frozen=True)
class Column:
    """One column: ``key`` names it in JSON and CSV, ``title`` in tables for people.

    ``human`` and ``machine`` say where it is shown; ``min_width`` is that of the plain-text table;
    ``suffix_key`` names a column whose values follow in brackets in the plain-text table (nvprof's ``name [42]``).
    """

    key: str
    title: str
    kind: Kind
    human: bool = True
    machine: bool = True
    min_width: int = 0
    suffix_key: str = ""


@dataclass(frozen=True)
class TableModel:
    """A finished report.

    Attributes:
        view: name of the view, as in ``report.VIEWS``.
        title: one line.
        columns: in the order of display.
        data: column key -> values, all of the same length.
        preamble: lines before the table (where the data come from; "simulated").
        footers: lines after it (legends, rows left out).
        notes: for each block that has no rows, what to say.
        losses: counter -> count, as the run has them.
        losses_line: that in one line; empty if all are zero.
        facts: what a program wants to know besides rows (``simulated``, ``device``, ...).
        block_key: column that groups the rows into blocks; empty if there are none.
        depth_key: column with the depth of a row in a tree; empty if it is flat. The text column is indented by it.
        origin_ns: what instants are shown relative to, in tables for people.
        prefix: put before preamble lines in plain text, nvprof's ``==PID== ``.
    """

    view: str
    title: str
    columns: tuple[Column, ...]
    data: Mapping[str, Sequence[Any]]
    preamble: tuple[str, ...] = ()
    footers: tuple[str, ...] = ()
    notes: Mapping[str, str] = field(default_factory=dict)
    losses: Mapping[str, int] = field(default_factory=dict)
    losses_line: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)
    block_key: str = ""
    depth_key: str = ""
    origin_ns: int = 0
    prefix: str = ""

    def __len__(self) -> int:
        return len(self.data[self.columns[0].key])
