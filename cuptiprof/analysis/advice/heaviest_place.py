"""Where most of some time was: of work on the GPU by what launched it, of moments on the host by what ran then."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from cuptiprof import _core
from cuptiprof.analysis.advice.suggestion import Place
from cuptiprof.analysis.arrays.aggregate import Int64, sum_by_group
from cuptiprof.analysis.arrays.nesting import innermost
from cuptiprof.analysis.counter_values.kernel_counters import match
from cuptiprof.data.codes import renumbered
from cuptiprof.data.result import Result
from cuptiprof.data.tables import Array, Table
from cuptiprof.text.short_names import cut_middle

_LEAST = 0.25
"""Share of the time that a place has to have to be named."""

_IN_A_SENTENCE = 60
"""characters of a name"""
_STEP = re.compile(r"ProfilerStep\s*#\s*\d+")


def operator_codes(result: Result, work: Table) -> Int64:
    """String index of the name of the innermost operator that launched each row; 0: none is known.

    Where operators were only named at launches, the index is that of the path (``last_name`` has its last name).
    """
    instance = work.codes("operator_instance")
    codes = work.codes("operator").astype(np.int64)
    if not len(result.operators) or not instance.any():
        return codes
    at = match(instance, result.operators["instance"])
    return np.where((at >= 0) & (instance > 0), result.operators.codes("name")[np.maximum(at, 0)], codes)


def in_sentence(name: str) -> str:
    """A name as a sentence has it: of names that are very long, both ends."""
    return cut_middle(name, _IN_A_SENTENCE)


def last_name(path: str) -> str:
    """The innermost name of a path."""
    return str(_core.split_region_path(path)[-1]) if path else ""


def of_work(result: Result, parts: Sequence[tuple[Table, Array, Int64]], kernel: str = "") -> Place:
    """The line, module, operator and region that launched most of it; `parts`: (table, its rows, their weights).

    ``Place.share`` is that of the narrowest of them that is named.
    """
    place = Place(kernel=kernel)
    for field in ("region", "operator", "module", "line"):
        codes, weights = [], []
        for table, rows, weight in parts:
            if field in table.column_names and len(rows):
                part = table.where(rows)
                codes.append(
                    operator_codes(result, part) if field == "operator" else part.codes(field).astype(np.int64)
                )
                weights.append(weight)
        text, share = _top(result, codes, weights, _SHOWN.get(field, _as_it_is))
        if text:
            place = replace(place, **{field: text, "share": share})  # type: ignore[arg-type]
    return place


def of_moments(result: Result, thread: Array, at: Int64, weight: Int64) -> Place:
    """The operator and the region in which the host was most of these moments."""
    place = Place()
    for field, table in (("region", result.regions), ("operator", result.operators)):
        if not len(table) or not len(at):
            continue
        row = innermost(table["thread"], table["start"], table["end"], thread, at)
        names = table.codes("path" if field == "region" else "name")
        codes = np.where(row >= 0, names[np.maximum(row, 0)].astype(np.int64), 0)
        text, share = _top(result, [codes], [weight], _of_all_steps)
        if text:
            place = replace(place, **{field: text, "share": share})  # type: ignore[arg-type]
    return place


def _top(result: Result, codes: list[Int64], weights: list[Int64], shown: Callable[[str], str]) -> tuple[str, float]:
    """The text that most of the weight has, as it is `shown`, and its share; "" if that is less than ``_LEAST``."""
    if not codes:
        return "", 1.0
    weight = np.concatenate(weights)
    whole = int(weight.sum())
    used, which = renumbered(np.concatenate(codes))
    if not whole or not used.any():
        return "", 1.0
    sums: dict[str, int] = {}
    for code, value in zip(used.tolist(), sum_by_group(which, weight, len(used)).tolist(), strict=True):
        text = shown(str(result.kernels.strings[code]))
        sums[text] = sums.get(text, 0) + value
    sums.pop("", None)
    best = max(sums, key=lambda text: sums[text])
    share = sums[best] / whole
    return (best, share) if share >= _LEAST else ("", 1.0)


def _as_it_is(text: str) -> str:
    return text


def _of_all_steps(path: str) -> str:
    """A path of regions without the number of the step: what is the same in each is one place."""
    return _STEP.sub("ProfilerStep#*", path)


_SHOWN = {"operator": last_name, "region": _of_all_steps}
