"""GPU work by what one asks for: kernel, region, operator, module or training step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from cuptiprof.analysis.arrays.aggregate import Int64
from cuptiprof.analysis.operator_work.module_stats import module_of_work
from cuptiprof.analysis.training_steps.step_spans import StepSpans, gpu_steps, host_steps
from cuptiprof.analysis.trees.host_tree import HostKind, host_tree
from cuptiprof.analysis.trees.region_tree import NO_REGION, WORK_TABLES, path_tree
from cuptiprof.analysis.work.gpu_work import named_work, traced_graphs
from cuptiprof.analysis.work.launch_calls import calls_of
from cuptiprof.data.codes import distinct_rows
from cuptiprof.data.result import Result
from cuptiprof.data.tables import Array, Table
from cuptiprof.text.short_names import function_name

WorkBy = Literal["kernel", "region", "operator", "module", "step"]
GROUPS: tuple[WorkBy, ...] = get_args(WorkBy)


@dataclass(frozen=True)
class GroupedWork:
    """Kernels, copies, sets and whole graphs of a run, each in one group. Times in ns.

    Attributes:
        names: of the groups. group: shape (n,), which one each piece of work is in.
        like: shape (n,), pieces with one value do the same: one kernel with one grid and block, copies of one kind and size.
        like_names: what a value of `like` stands for, so that those of two runs can be matched.
        start, duration: shape (n,).
        step: shape (n,), place in `steps` of the step that launched it; -1: none.
        steps: the training steps, as ``gpu_steps`` has them; none where the run marks none.
        kernels: the first so many are the rows of ``kernels``.
    """

    names: list[str]
    group: Int64
    like: Int64
    like_names: list[tuple[object, ...]]
    start: Int64
    duration: Int64
    step: Int64
    steps: StepSpans
    kernels: int

    def __len__(self) -> int:
        return len(self.group)


def grouped_work(result: Result, by: WorkBy, *, short_names: bool = False, demangle: bool = True) -> GroupedWork:
    """The GPU work of a run by kernel (copies and sets by the names that Kineto gives them), innermost region, innermost operator,
    module, or training step: every piece of work is in one group.

    Args:
        short_names: kernels without return type, parameters, template arguments and addresses are one group.
    """
    tables = [result.tables[name] for name in WORK_TABLES]
    tables[-1] = tables[-1].where(traced_graphs(result))
    like, like_names, kernel_names, kernel_of = _alike(result, tables, demangle)
    steps, step = _steps(result, tables)
    if by == "kernel":
        shown = [function_name(name) for name in kernel_names] if short_names else kernel_names
        names, group = _by_name(shown, kernel_of)
    elif by == "step":
        names, group = [*steps.name, "(no step)"], np.where(step >= 0, step, len(steps))
    else:
        names, group = {"region": _regions, "operator": _operators, "module": _modules}[by](result, tables)
    return GroupedWork(
        names,
        group,
        like,
        like_names,
        np.concatenate([t["start"] for t in tables]),
        np.concatenate([t["duration"] for t in tables]),
        step,
        steps,
        len(tables[0]),
    )


def _by_name(names: list[str], which: Int64) -> tuple[list[str], Int64]:
    """Those of one name are one group."""
    known: dict[str, int] = {}
    place = np.array([known.setdefault(name, len(known)) for name in names], np.int64)
    return list(known), place[which] if len(place) else which


def _alike(
    result: Result, tables: list[Table], demangle: bool
) -> tuple[Int64, list[tuple[object, ...]], list[str], Int64]:
    """What does the same; the names of all work, and which of them each piece has."""
    like: list[Int64] = []
    keys: list[tuple[object, ...]] = []
    names: list[str] = []
    which: list[Int64] = []
    for (found, _), table in zip(named_work(result, demangle), tables[:-1], strict=True):
        size = "config" if table.name == "kernels" else "bytes"
        rows, of_row = distinct_rows(found.ids, table.codes(size))
        configs = result.launch_configs
        for name, value in rows.tolist():
            sizes = [int(configs[f"{w}_{axis}"][value]) for w in ("grid", "block") for axis in "xyz"] if size == "config" else [value]  # fmt: skip
            keys.append((found.names[name], *sizes))
        like.append(of_row.astype(np.int64) + len(keys) - len(rows))
        which.append(found.ids.astype(np.int64) + len(names))
        names += found.names
    keys.append(("[CUDA graph]",))
    names.append("[CUDA graph]")
    graphs = len(tables[-1])
    like.append(np.full(graphs, len(keys) - 1, np.int64))
    which.append(np.full(graphs, len(names) - 1, np.int64))
    return np.concatenate(like), keys, names, np.concatenate(which)


def _steps(result: Result, tables: list[Table]) -> tuple[StepSpans, Int64]:
    """The steps of a run, and in which of them each piece of work was launched: as it was marked, else by the time of its call."""
    host = host_steps(result)
    count = sum(len(t) for t in tables)
    if not len(host):
        return host, np.full(count, -1, np.int64)
    steps = gpu_steps(result)
    marked = np.concatenate(
        [t.codes("step").astype(np.int64) if "step" in t.column_names else np.zeros(len(t), np.int64) for t in tables]
    )
    if marked.any():
        place = {name: i for i, name in enumerate(steps.name)}
        used, which = np.unique(marked, return_inverse=True)
        at = np.array([place.get(str(number - 1), -1) for number in used.tolist()], np.int64)
        return steps, at[which.reshape(-1)]
    api = result.api_calls
    call = calls_of(api, np.concatenate([t["correlation_id"] for t in tables]))
    at = np.searchsorted(host.start, api["start"], side="right") - 1
    inside = (at >= 0) & (api["end"] <= host.end[np.maximum(at, 0)]) & (at < len(steps))
    at = np.where(inside, at, -1)
    return steps, np.where(call >= 0, at[call], -1) if len(at) else np.full(count, -1, np.int64)


def _regions(result: Result, tables: list[Table]) -> tuple[list[str], Int64]:
    columns = [t.codes("region") for t in tables]
    tree = path_tree(result.regions.strings, columns)
    names = ["/".join(path) for path in tree.paths]
    return _by_name(names, np.concatenate([tree.nodes(c) for c in columns]).astype(np.int64))


def _operators(result: Result, tables: list[Table]) -> tuple[list[str], Int64]:
    none = "(no operator)"
    if not len(result.operators):  # level "launch": only their names at launches
        columns = [_or_zeros(t, "operator") for t in tables]
        paths = path_tree(result.kernels.strings, columns)
        names = [none if path == (NO_REGION,) else path[-1] for path in paths.paths]
        return _by_name(names, np.concatenate([paths.nodes(c) for c in columns]).astype(np.int64))
    tree = host_tree(result)
    place = np.concatenate(
        [tree.places(result, t) if "operator_instance" in t.column_names else np.full(len(t), -1) for t in tables]
    )
    is_operator = (tree.kind == HostKind.OPERATOR) & ~tree.is_annotation
    known = (place >= 0) & is_operator[place]
    which = np.where(known, tree.name[place], len(tree.names)) if len(tree) else np.full(len(place), len(tree.names))
    return _by_name([*tree.names, none], which)


def _modules(result: Result, tables: list[Table]) -> tuple[list[str], Int64]:
    codes = np.concatenate([*module_of_work(result, tables[:-1]), np.zeros(len(tables[-1]), np.int64)])
    used, which = np.unique(codes, return_inverse=True)
    strings = result.kernels.strings
    return _by_name([strings[code] or "(no module)" for code in used.tolist()], which.reshape(-1))


def _or_zeros(table: Table, column: str) -> Array:
    return table.codes(column) if column in table.column_names else np.zeros(len(table), np.uint32)
