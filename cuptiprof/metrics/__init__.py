"""The metric catalogue: nvprof's and Nsight Compute's names as expressions over perfworks metrics, chip by chip.

Data, not code: ``metrics/lists``. Nothing of it is read before a name is resolved, and no GPU is needed.
"""

from __future__ import annotations

from cuptiprof.metrics.catalogue import resolve, resolve_events, select
from cuptiprof.metrics.expression import Expression, parse
from cuptiprof.metrics.metric import Metric, Selection
from cuptiprof.metrics.metric_sections import resolve_section, resolve_set, section_names, section_page, set_names
from cuptiprof.metrics.name_tables import memory_path
from cuptiprof.metrics.target import check_chip
from cuptiprof.metrics.values import format_kind, format_value

__all__ = [
    "Expression",
    "Metric",
    "Selection",
    "check_chip",
    "format_kind",
    "format_value",
    "memory_path",
    "parse",
    "resolve",
    "resolve_events",
    "resolve_section",
    "resolve_set",
    "section_names",
    "section_page",
    "select",
    "set_names",
]
