"""JSON for programs: one object with ``rows`` (raw values, one object a row) and ``losses``."""

from __future__ import annotations

import json
from typing import Any

from cuptiprof.report.model import Report, View
from cuptiprof.report.units import is_missing


def plain_rows(view: View) -> list[dict[str, Any]]:
    """One dict a row: raw values, None for a missing one."""
    keys = [column.key for column in view.columns if column.machine]
    columns = [[None if is_missing(value) else value for value in view.data[key]] for key in keys]
    return [dict(zip(keys, values, strict=True)) for values in zip(*columns, strict=True)]


def to_json(report: Report) -> str:
    """The report as one JSON object; times in ns, percentages 0..100, missing values null."""
    document = {
        "view": report.view,
        "title": report.title,
        "header": list(report.header),
        **report.content.facts,
        "rows": plain_rows(report.content),
        "losses": dict(report.losses),
        "metadata": dict(report.metadata),
    }
    return json.dumps(document, indent=1, allow_nan=False) + "\n"
