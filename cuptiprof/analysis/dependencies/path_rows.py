"""The critical path by name: what it went through, and how long."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from cuptiprof.analysis.arrays.aggregate import Int64, covered_before, group_stats
from cuptiprof.analysis.dependencies.critical_path import CriticalPath, PathKind
from cuptiprof.analysis.dependencies.host_lanes import HOST_TABLES
from cuptiprof.analysis.dependencies.host_pieces import host_pieces
from cuptiprof.analysis.dependencies.path_gains import path_limits
from cuptiprof.analysis.training_steps.step_spans import gpu_steps
from cuptiprof.analysis.work.communication import communicating
from cuptiprof.analysis.work.gpu_work import kernel_names, memcpy_names
from cuptiprof.analysis.work.kernel_properties import launching_operators
from cuptiprof.analysis.work.stream_work import work_tables
from cuptiprof.data.codes import distinct_rows, renumbered
from cuptiprof.data.result import Result
from cuptiprof.data.tables import Array, Table

KINDS = ("host", "launch", "kernel", "communication", "copy", "gap", "sync", "unknown")
"""Kinds of pieces for people: work by what it is, all else as ``PathKind``."""
_OF_PATH = {
    PathKind.HOST: "host",
    PathKind.LAUNCH: "launch",
    PathKind.GAP: "gap",
    PathKind.SYNC: "sync",
    PathKind.UNKNOWN: "unknown",
}
_OF_TABLE = ("kernel", "copy", "copy", "kernel")
_STEP = re.compile(r"(^|/)ProfilerStep#\d+")
OUTSIDE = "(outside of operators and calls)"


@dataclass(frozen=True)
class PathRow:
    """All pieces of the path that are alike.

    Attributes:
        kind: one of ``KINDS``.
        name: of the kernel or copy (that ran, was launched, came after the gap), of the operator, region or call of the host, of the call that waited.
        operator: innermost PyTorch operator; "": none.
        region: path of the region; ``ProfilerStep#N`` of all N is ``ProfilerStep#*``; "": none.
        time: ns. pieces: how many.
        saves: by how much the run would be shorter at most without one of the pieces, each alone, added up, ns (``path_limits``).
    """

    kind: str
    name: str
    operator: str
    region: str
    time: int
    pieces: int
    saves: int


class _Texts:
    """Texts as numbers, each once."""

    def __init__(self) -> None:
        self.number: dict[str, int] = {"": 0}

    def of(self, codes: Array, text: Callable[[int], str]) -> Int64:
        used, which = renumbered(codes)
        numbers = [self.number.setdefault(text(code), len(self.number)) for code in used.tolist()]
        return np.asarray(numbers, np.int64)[which] if numbers else np.zeros(0, np.int64)


def path_rows(result: Result, path: CriticalPath, demangle: bool = True) -> list[PathRow]:
    """The path by kind, name, operator and region; what takes longest first."""
    texts = _Texts()
    of_host = path.kind == PathKind.HOST
    parts = [
        _host(result, path, np.flatnonzero(of_host), texts),
        _work(result, path, np.flatnonzero(~of_host), texts, demangle),
    ]
    kind, name, operator, region, time, piece = (np.concatenate([part[i] for part in parts]) for i in range(6))
    if not len(time):
        return []
    found, which = distinct_rows(kind, name, operator, region)
    stats, saves = group_stats(which, time), group_stats(which, np.minimum(time, path_limits(path)[piece]))
    order = np.argsort(-stats.total, kind="stable")
    of_kind, *codes = found[order].T.tolist()
    all_texts = list(texts.number)
    names = ([all_texts[code] for code in column] for column in codes)
    times = (column[order].tolist() for column in (stats.total, stats.count, saves.total))
    return [PathRow(KINDS[kind], *row) for kind, *row in zip(of_kind, *names, *times, strict=True)]


def kinds(result: Result, path: CriticalPath) -> Int64:
    """Index in ``KINDS`` of each piece."""
    out = np.array([KINDS.index(_OF_PATH.get(PathKind(kind), "kernel")) for kind in PathKind])[path.kind]
    ran = np.flatnonzero(path.kind == PathKind.WORK)
    row, first = path.graph.work.row[path.work[ran]], _firsts(result)
    table = np.searchsorted(first, row, side="right") - 1
    out[ran] = np.array([KINDS.index(kind) for kind in _OF_TABLE])[table]
    talk = np.zeros(len(ran), bool)
    talk[table == 0] = communicating(result.kernels)[row[table == 0]]
    out[ran[talk]] = KINDS.index("communication")
    return out


def path_steps(result: Result, path: CriticalPath) -> tuple[list[str], Int64, Int64]:
    """The path cut at the training steps (``gpu_steps``): names, starts and ends (shape (steps, 2)), and ns by step and kind, shape (steps, kinds)."""
    steps = gpu_steps(result)
    kind = kinds(result, path)
    out = np.zeros((len(steps), len(KINDS)), np.int64)
    for i in range(len(KINDS)):
        start, end = path.start[kind == i], path.end[kind == i]
        out[:, i] = covered_before(start, end, steps.end) - covered_before(start, end, steps.start)
    return steps.name, np.column_stack([steps.start, steps.end]), out


def _firsts(result: Result) -> Int64:
    """Where each of ``work_tables`` begins among their rows."""
    return np.cumsum([0, *(len(table) for table in work_tables(result)[:-1])])


def _host(result: Result, path: CriticalPath, rows: Int64, texts: _Texts) -> tuple[Int64, ...]:
    found = host_pieces(result, path.graph.lanes, path.lane[rows], path.start[rows], path.end[rows])
    name = np.full(len(found.start), texts.of(np.zeros(1, np.int64), lambda _: OUTSIDE)[0])
    for i, table in enumerate(HOST_TABLES):
        mine = np.flatnonzero(found.scope == i)
        name[mine] = _column(result.tables[table], "name", found.row[mine], texts)
    operator, region = (np.zeros(len(name), np.int64) for _ in range(2))
    mine = np.flatnonzero(found.operator >= 0)
    operator[mine] = _column(result.operators, "name", found.operator[mine], texts)
    mine = np.flatnonzero(found.region >= 0)
    region[mine] = _column(result.regions, "path", found.region[mine], texts)
    piece = np.searchsorted(path.start, found.start, side="right") - 1
    return np.full(len(name), KINDS.index("host")), name, operator, region, found.end - found.start, piece


def _work(result: Result, path: CriticalPath, rows: Int64, texts: _Texts, demangle: bool) -> tuple[Int64, ...]:
    name, operator, region = (np.zeros(len(rows), np.int64) for _ in range(3))
    row, first = path.graph.work.row[path.work[rows]], _firsts(result)
    for i, table in enumerate(work_tables(result)):
        mine = np.flatnonzero(np.searchsorted(first, row, side="right") - 1 == i)
        at = row[mine] - first[i]
        if table.name == "kernels":
            names = kernel_names(table, demangle, at)
            name[mine] = texts.of(names.ids, lambda code, names=names: names.names[code])  # type: ignore[misc]
        elif table.name == "memcpys":
            names = memcpy_names(table, at)
            name[mine] = texts.of(names.ids, lambda code, names=names: names.names[code])  # type: ignore[misc]
        else:
            text = "[CUDA memset]" if table.name == "memsets" else "[CUDA graph]"
            name[mine] = texts.of(at * 0, lambda _, text=text: text)  # type: ignore[misc]
        if table.name != "graph_launches":
            number, names_of = launching_operators(result, table, at)
            operator[mine] = texts.of(number, lambda code, names_of=names_of: names_of[code])  # type: ignore[misc]
        region[mine] = _column(table, "region", at, texts)
    waited = np.flatnonzero(path.kind[rows] == PathKind.SYNC)
    name[waited] = _column(result.api_calls, "name", path.call[rows[waited]], texts)
    return kinds(result, path)[rows], name, operator, region, (path.end - path.start)[rows], rows


def _column(table: Table, column: str, rows: Array, texts: _Texts) -> Int64:
    return texts.of(table.codes(column)[rows], lambda code: _STEP.sub(r"\1ProfilerStep#*", str(table.strings[code])))
