"""What a view produces: columns and raw values, free of any output format."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

Kind = Literal["text", "count", "time", "start", "percent", "bytes", "throughput", "dims", "number"]


@dataclass(frozen=True)
class Column:
    """One column: `key` in rows and JSON, `title` for people, `kind` says how values are shown.

    time: ns, unit chosen per value. start: ns, one unit for the column. percent: 0-100. bytes: bytes. throughput: bytes/s.
    dims: a tuple of three.
    """

    key: str
    title: str
    kind: Kind = "text"


@dataclass
class Block:
    """A titled table. Rows are dicts by column key; None is shown as "-"."""

    title: str
    columns: list[Column]
    rows: list[dict[str, Any]]
    indent_key: str = ""  # rows[indent_key] levels of indentation on the last column
    note: str = ""


@dataclass
class Report:
    """A finished view. ``print(report)`` shows it as text; ``report.to("markdown")`` and others give a str."""

    view: str
    title: str
    header: list[str]
    blocks: list[Block]
    losses: dict[str, int]
    losses_line: str
    units: str = "auto"
    metadata: dict[str, Any] = field(default_factory=dict)

    @property
    def rows(self) -> list[dict[str, Any]]:
        """All rows, each with the title of its block under "block"."""
        return [{"block": b.title, **row} for b in self.blocks for row in b.rows]

    def to(self, format: str = "text") -> str:
        """The report as "text", "rich" (colours for a terminal), "markdown", "csv" or "json".

        Raises:
            ResultError: an unknown format.
        """
        from cuptiprof.report.render import render

        return render(self, format)

    def __str__(self) -> str:
        return self.to("text")

    def _repr_markdown_(self) -> str:
        return self.to("markdown")
