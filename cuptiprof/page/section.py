"""One section of the page: a heading, what is in it, and what draws it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cuptiprof.page.packed import PageColumn, pack, page_text
from cuptiprof.page.table_data import table_columns, table_facts
from cuptiprof.report.model import Report

ASSETS = Path(__file__).with_name("assets")
VENDORED = Path(__file__).with_name("vendored")


@dataclass(frozen=True)
class Section:
    """What a file in ``sections/`` gives.

    Attributes:
        key: names it in addresses (``#s-kernels``) and is unique in a run.
        title: its heading.
        summary: a sentence or two below the heading, there before any script runs; "" for none.
        tables: reports shown as tables that can be sorted, searched and grouped.
        columns: what is drawn; ``data.columns`` of the JavaScript. A name may not begin with a digit.
        facts: what JSON can say beside it; ``data.facts``. The same for every machine of the reader: texts are not made printable here.
        mount: name under which the JavaScript registered what draws it (``cuptiprof.mount(mount, draw)``). "tables" draws the tables and nothing
            else; another one gets an element above the tables.
        scripts: files of ``assets/`` that it needs, in order, beside those of every page.
        vendored: files of ``vendored/`` that it needs; they come before its scripts and styles.
        styles: files of ``assets/`` with CSS.
        wide: takes the whole width of the window.
    """

    key: str
    title: str
    summary: str = ""
    tables: tuple[Report, ...] = ()
    columns: Mapping[str, PageColumn] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)
    mount: str = "tables"
    scripts: tuple[str, ...] = ()
    vendored: tuple[str, ...] = ()
    styles: tuple[str, ...] = ()
    wide: bool = False

    def packed(self) -> str:
        """All its data as one text; see :mod:`cuptiprof.page.packed`."""
        columns = dict(self.columns)
        for i, table in enumerate(self.tables):
            columns |= {f"{i}:{key}": column for key, column in table_columns(table.content).items()}
        return pack(columns, {**self.facts, "tables": [table_facts(table) for table in self.tables]})

    @property
    def shown_summary(self) -> str:
        return page_text(self.summary)
