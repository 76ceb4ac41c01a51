"""What our own databases keep as NVTX ranges, made what it was: regions, operators, steps (``own_domains.py``)."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from cuptiprof.data.enums import SCOPE_SOURCES, code_of
from cuptiprof.data.tables import Array, Strings
from cuptiprof.io.kineto.span_paths import SpanPaths
from cuptiprof.io.kineto.thread_spans import ThreadSpans
from cuptiprof.io.sqlite.database import Int64
from cuptiprof.io.sqlite.nvtx_ranges import NvtxRanges
from cuptiprof.io.sqlite.own_domains import OPERATORS, REGIONS, STEPS

_NUMBER = re.compile(r"#(\d{1,9})$")


def sort_out(scopes: dict[str, Any], markers: dict[str, Any], strings: Strings) -> dict[str, Any]:
    """Takes operators and steps out of ranges that were pushed and popped; of the others ``source`` and ``domain`` say what they are.

    Returns:
        the columns of the operators. Steps become markers, with their category and number.
    """
    operators = _taken(scopes, OPERATORS, strings)
    steps = _taken(scopes, STEPS, strings)  # nvprof does not tell ranges with a start and an end from pushed ones
    for name, values in markers.items():
        further = steps.get(name, np.zeros(len(steps["start"]), np.int64))
        markers[name] = np.concatenate([values, further])
    is_step = _is(markers["domain"], STEPS, strings)
    if is_step.any():
        found = [_NUMBER.search(strings[code]) for code in markers["name"][is_step].tolist()]
        markers["id"] = np.zeros(len(is_step), np.int64)
        markers["id"][is_step] = [int(match[1]) if match else 0 for match in found]
        markers["category"] = np.where(is_step, strings.code("step"), markers["category"])
        markers["domain"] = np.where(is_step, 0, markers["domain"])
    is_region = _is(scopes["domain"], REGIONS, strings)
    scopes["source"] = np.where(is_region, 0, code_of(SCOPE_SOURCES, "nvtx"))
    scopes["domain"] = np.where(is_region, 0, scopes["domain"])
    return operators


def _taken(scopes: dict[str, Any], domain: str, strings: Strings) -> dict[str, Any]:
    chosen = _is(scopes["domain"], domain, strings)
    taken = {name: values[chosen] for name, values in scopes.items()}
    for name, values in scopes.items():
        scopes[name] = values[~chosen]
    return taken


class OperatorRanges:
    """Rows of ``operators``, which nest on a thread."""

    def __init__(self, columns: dict[str, Any], strings: Strings) -> None:
        """`columns`: start, end, thread, name, is_open, and sequence and scope where the file has them."""
        self._columns = columns
        self._spans = ThreadSpans(columns["thread"], columns["start"], columns["end"])
        order = self._spans.order
        self._instance = np.empty(len(order), np.int64)
        self._instance[order] = np.arange(1, len(order) + 1)
        paths = SpanPaths(self._spans.parent, columns["name"], strings)
        node = paths.of(np.arange(len(order)))
        self._code: Int64 = np.array([strings.code(text) for text in paths.texts], np.int64)[node]

    def columns(self, ranges: NvtxRanges) -> dict[str, Any]:
        """Columns of the table, each operator with the region open at its start."""
        parent, order = self._spans.parent, self._spans.order
        known = ("start", "end", "thread", "name", "is_open", "sequence", "scope")
        made = {
            **{name: values for name, values in self._columns.items() if name in known},
            **ranges.placed(self._columns["thread"], self._columns["start"]),
            "instance": self._instance,
            "parent": np.where(parent >= 0, self._instance[parent], 0) if len(order) else parent,
        }
        return {name: values[order] for name, values in made.items()}

    def placed(self, thread: Array, time: Array) -> dict[str, Int64]:
        """Columns ``operator`` and ``operator_instance`` of what happened on a thread at a time (ns); none: there are no operators."""
        if not len(self._spans):
            return {}
        row = self._spans.at(thread, time)
        known = row >= 0
        return {
            "operator": np.where(known, self._code[row], 0),
            "operator_instance": np.where(known, self._instance[row], 0),
        }


def _is(domain: Array, name: str, strings: Strings) -> Array:
    code = strings.find(name)
    return domain == code if code is not None else np.zeros(len(domain), bool)
