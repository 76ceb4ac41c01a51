"""JSON for programs: one object with ``rows`` (raw values, one object a row) and ``losses``."""

from __future__ import annotations

import json

from cuptiprof.report.model import TableModel
from cuptiprof.report.units import is_missing


def to_json(model: TableModel) -> str:
    """The report as one JSON object; times in ns, percentages 0..100, missing values null."""
    keys = [column.key for column in model.columns if column.machine]
    columns = [[None if is_missing(value) else value for value in model.data[key]] for key in keys]
    rows = [dict(zip(keys, values, strict=True)) for values in zip(*columns, strict=True)]
    document = {
        "view": model.view,
        "title": model.title,
        **model.facts,
        "rows": rows,
        "losses": dict(model.losses),
    }
    return json.dumps(document, indent=1, allow_nan=False) + "\n"
