"""Tables for notebooks. Every text is escaped: names are whatever a program chose."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence

from cuptiprof.text.names import printable

_CELL = "padding:1px 8px;white-space:pre;text-align:"


def escaped(text: str) -> str:
    """``text`` as HTML that shows exactly it, also inside quotes; control characters made visible."""
    return html.escape(printable(text), quote=True)


def html_line(text: str, style: str = "") -> str:
    """A paragraph; ``style`` is CSS of ours."""
    return f'<div style="{style}">{escaped(text)}</div>'


def html_table(
    titles: Sequence[str], rows: Iterable[Sequence[str]], left: Sequence[bool], full: Sequence[dict[str, str]] = ()
) -> str:
    """A table of texts. ``left``: which columns are aligned so; ``full``: for each column what a shown text stands for,
    where that is another."""
    align = ["left" if is_left else "right" for is_left in left]
    head = "".join(f'<th style="{_CELL}{a}">{escaped(t)}</th>' for a, t in zip(align, titles, strict=True))
    lines = [
        "<tr>" + "".join(_cell(cell, align[i], full[i] if full else {}) for i, cell in enumerate(row)) + "</tr>"
        for row in rows
    ]
    return f'<div style="overflow-x:auto"><table><thead><tr>{head}</tr></thead><tbody>{"".join(lines)}</tbody></table></div>'


def _cell(text: str, align: str, full: dict[str, str]) -> str:
    whole = full.get(text, text)
    title = f' title="{escaped(whole)}"' if whole != text else ""
    return f'<td style="{_CELL}{align}"{title}>{escaped(text)}</td>'


def html_text(text: str) -> str:
    """Lines as they are."""
    return f"<pre>{chr(10).join(escaped(line) for line in text.splitlines())}</pre>"
