"""When each module of PyTorch was at work: from the first to the last of the operators in a row that ran in it."""

from __future__ import annotations

import numpy as np

from cuptiprof.analysis.arrays.aggregate import Int64
from cuptiprof.analysis.work.gpu_work import NameIds
from cuptiprof.data.codes import renumbered
from cuptiprof.data.tables import Table

_DEEPEST = 24


def module_runs(operators: Table) -> tuple[Int64, Int64, Int64, NameIds]:
    """Thread, start, end (ns) and path of each stretch; a module's holds those of the modules in it."""
    order = np.lexsort((-operators["end"], operators["start"], operators["thread"]))
    thread = operators["thread"][order].astype(np.int64)
    start, end = operators["start"][order], np.maximum(operators["end"], operators["start"])[order]
    used, which = renumbered(operators.codes("module")[order])
    paths = [operators.strings[code].split(".") if code else [] for code in used.tolist()]
    numbers: dict[str, int] = {}
    parts: list[tuple[Int64, ...]] = []
    for depth in range(1, min(_DEEPEST, max(map(len, paths), default=0)) + 1):
        of_path = [numbers.setdefault(".".join(p[:depth]), len(numbers)) if len(p) >= depth else -1 for p in paths]
        module = np.array(of_path, np.int64)[which]
        first = np.flatnonzero(np.r_[True, (module[1:] != module[:-1]) | (thread[1:] != thread[:-1])])
        last = np.maximum.reduceat(end, first)
        there = module[first] >= 0
        first, last = first[there], last[there]
        parts.append((thread[first], start[first], last, module[first]))
    if not parts:
        empty = np.zeros(0, np.int64)
        return empty, empty, empty, NameIds(empty, [])
    of_thread, begin, stop, ids = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    return of_thread, begin, stop, NameIds(ids, list(numbers))
