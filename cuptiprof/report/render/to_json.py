"""JSON for programs: one object with ``rows`` (raw values, one object a row) and ``losses``."""

from __future__ import annotations

import json
from typing import Any

from cuptiprof.report.model import Report, View
from cuptiprof.text.units import is_missing


def plain_rows(view: View) -> list[dict[str, Any]]:
    """One dict a row: raw values, None for a missing one."""
    keys = [column.key for column in view.columns if column.machine]
    columns = [[None if is_missing(value) else value for value in view.data[key]] for key in keys]
    return [dict(zip(keys, values, strict=True)) for values in zip(*columns, strict=True)]


def to_json(report: Report) -> str:
    """The report as one JSON object; times in ns, percentages 0..100, missing values null."""
    head = {
        "view": report.view,
        "title": report.title,
        "header": list(report.header),
        **report.content.facts,
        "losses": dict(report.losses),
        "metadata": dict(report.metadata),
    }
    # One row a line: greppable, and a long trace stays a file that an editor opens.
    rows = ",\n".join(f"  {json.dumps(row, allow_nan=False)}" for row in plain_rows(report.content))
    body = json.dumps(head, indent=1, allow_nan=False).removesuffix("\n}")
    return f'{body},\n "rows": [\n{rows}\n ]\n}}\n'
