"""What stands first in a page of two runs."""

from __future__ import annotations

from cuptiprof.analysis.comparison.run_diff import diff_runs
from cuptiprof.analysis.comparison.work_groups import GROUPS
from cuptiprof.data.result import Result
from cuptiprof.report import make_diff_report
from cuptiprof.report.model import Report

_ROWS = 2_000


def differences(base: Result, new: Result, names: tuple[str, str]) -> list[Report]:
    """By kernel, region, operator, module and step, of those that either run has; at most 2,000 rows each."""
    reports = [make_diff_report(diff_runs(base, new, by), base, new, limit=_ROWS, names=names) for by in GROUPS]
    return [report for report in reports if len(report.content)]
