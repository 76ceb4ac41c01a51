"""A report as a pandas DataFrame."""

from __future__ import annotations

from typing import Any

from cuptiprof.data.tables import need
from cuptiprof.report.model import Report
from cuptiprof.report.render.to_json import plain_rows


def to_pandas(report: Report) -> Any:
    """The rows and columns of JSON and CSV; of what all have in common, title, header and metadata are in ``attrs``.

    Raises:
        ResultError: pandas is not installed.
    """
    pd = need("pandas", "pandas")
    columns = [column.key for column in report.content.columns if column.machine]
    frame = pd.DataFrame(plain_rows(report.content), columns=columns)
    frame.attrs = {**report.metadata, "title": report.title, "header": list(report.header)}
    return frame
