"""torch.profiler's key averages: operators, annotations, CUDA calls and GPU work, added up by name."""

from __future__ import annotations

import json
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cuptiprof.analysis.arrays.aggregate import Int64, sum_by_group
from cuptiprof.analysis.operator_work.flops import operator_flops
from cuptiprof.analysis.operator_work.operator_stacks import Frames, frame_texts, operator_origins
from cuptiprof.analysis.trees.host_tree import HostKind, HostTree, host_tree
from cuptiprof.analysis.work.gpu_work import named_work, traced_graphs
from cuptiprof.data.codes import distinct_rows, renumbered
from cuptiprof.data.enums import ALLOCATOR_ACTIONS, code_of
from cuptiprof.data.result import Result
from cuptiprof.data.tables import Array, Table

_GIVEN, _TAKEN_BACK = (code_of(ALLOCATOR_ACTIONS, text) for text in ("alloc", "free_requested"))
_MEASURED = ("flop_count_hp", "flop_count_sp", "flop_count_dp")


@dataclass(frozen=True)
class KeyStats:
    """One entry a key, in order of first appearance; int64, times in ns.

    Attributes:
        name: of the operator, call, kernel, copy or set.
        is_device: GPU work, which has no time of the host.
        is_annotation: a name that the user gave. is_nested: the first of them lay in another.
        count: how many there were.
        cpu_self, cpu_total, device_self, device_total: without and with what lies inside.
        flops: see ``analysis.flops``; measured ones where flop_count_* were counted.
        memory_self, memory_total: bytes that torch's caching allocator gave on the GPU less those it took back, without and with
            what lies inside. Of which nobody knows where it was is ``[memory]``, as torch calls what lies in no operator.
        shapes: JSON; empty unless grouped by them. stack: frames that they were grouped by. scope: at::RecordScope of the first.
    """

    name: list[str]
    is_device: npt.NDArray[np.bool_]
    is_annotation: npt.NDArray[np.bool_]
    is_nested: npt.NDArray[np.bool_]
    count: Int64
    cpu_self: Int64
    cpu_total: Int64
    device_self: Int64
    device_total: Int64
    flops: Int64
    memory_self: Int64
    memory_total: Int64
    scope: Int64
    shapes: list[str]
    stack: list[Frames]

    def __len__(self) -> int:
        return len(self.name)


@dataclass(frozen=True)
class _Events:
    """One entry an event, host and GPU."""

    name: Int64
    is_device: npt.NDArray[np.bool_]
    is_annotation: npt.NDArray[np.bool_]
    is_nested: npt.NDArray[np.bool_]
    start: Int64
    end: Int64
    cpu_self: Int64
    device_self: Int64
    device_total: Int64
    flops: Int64
    memory_self: Int64
    memory_total: Int64
    scope: Int64
    shapes: Int64
    stack: Int64


def key_stats(result: Result, by_shape: bool = False, stack_n: int = 0) -> KeyStats:
    """Averages by name, and on request by the shapes of the inputs and by the innermost `stack_n` frames of the stack."""
    tree = host_tree(result)
    names: list[str] = list(tree.names)
    memory, elsewhere = _memory(result, tree, names)
    events = _joined(_joined(_host(result, tree, memory), elsewhere), _device(result, names))
    frames: dict[int, Frames] = {}
    group_of_stack = np.zeros(len(events.stack), np.int64)
    tops: dict[Frames, int] = {(): 0}
    if stack_n > 0:
        frames = frame_texts(result, events.stack)
        top = {number: tops.setdefault(texts[:stack_n], len(tops)) for number, texts in frames.items()}
        group_of_stack = np.fromiter((top[n] for n in sorted(top)), np.int64, len(top))[
            np.searchsorted(np.array(sorted(top), np.int64), events.stack)
        ]
    kind = events.is_device.astype(np.int64) * 2 + events.is_annotation
    shape, shapes = _shapes(result, events.shapes if by_shape else np.zeros(len(events.shapes), np.int64))
    groups, which = distinct_rows(kind, events.name, shape, group_of_stack)
    order = np.lexsort((-events.end, events.start))
    first = np.full(len(groups), len(order), np.int64)
    np.minimum.at(first, which[order], np.arange(len(order)))
    by_first = np.argsort(first, kind="stable")
    place = np.empty(len(groups), np.int64)
    place[by_first] = np.arange(len(groups))
    group, groups, leader = place[which], groups[by_first], order[first[by_first]]
    count = len(groups)

    def total(value: Int64) -> Int64:
        return sum_by_group(group, value, count)

    tops_by_number = list(tops)
    return KeyStats(
        name=[names[i] for i in groups[:, 1].tolist()],
        is_device=groups[:, 0] >= 2,
        is_annotation=groups[:, 0] % 2 == 1,
        is_nested=events.is_nested[leader],
        count=np.bincount(group, minlength=count).astype(np.int64),
        cpu_self=total(events.cpu_self),
        cpu_total=total(np.where(events.is_device, 0, events.end - events.start)),
        device_self=total(events.device_self),
        device_total=total(events.device_total),
        flops=total(events.flops),
        memory_self=total(events.memory_self),
        memory_total=total(events.memory_total),
        scope=events.scope[leader],
        shapes=[shapes[i] for i in groups[:, 2].tolist()],
        stack=[tops_by_number[i] for i in groups[:, 3].tolist()],
    )


def _shapes(result: Result, codes: Int64) -> tuple[Int64, list[str]]:
    """Shapes as torch.profiler tells them apart, and their texts: lists of tensors are [] there."""
    used, which = renumbered(codes)
    known: dict[str, int] = {}
    ids = [known.setdefault(flat_shapes(str(result.operators.strings[code])), len(known)) for code in used.tolist()]
    return np.asarray(ids, np.int64)[which], list(known)


def flat_shapes(text: str) -> str:
    """The JSON of ``operators.shapes`` as torch.profiler shows it to Python: lists of tensors are [] there. What is no such JSON, as it is."""
    if "[[[" not in text and ", [[" not in text:
        return text
    try:
        given = json.loads(text)
    except (ValueError, RecursionError):
        return text
    if not isinstance(given, list) or not all(isinstance(one, list) for one in given):
        return text
    return json.dumps([[] if any(isinstance(size, list) for size in one) else one for one in given])


def _memory(result: Result, tree: HostTree, names: list[str]) -> tuple[Int64, _Events]:
    """Bytes by place, and what has none as events by a name that is added to `names`."""
    history = result.tables["allocator_events"]
    action = history["action"]
    history = history.where((action == _GIVEN) | (action == _TAKEN_BACK))
    size = history["bytes"].astype(np.int64) * np.where(history["action"] == _GIVEN, 1, -1)
    place = tree.places(result, history)
    out = np.zeros(len(tree), np.int64)
    np.add.at(out, place[place >= 0], size[place >= 0])
    time, size = history["timestamp"][place < 0].astype(np.int64), size[place < 0]
    none, no = np.zeros(len(time), np.int64), np.zeros(len(time), bool)
    elsewhere = _Events(
        name=np.full(len(time), len(names)),
        is_device=no,
        is_annotation=no,
        is_nested=no,
        start=time,
        end=time,
        cpu_self=none,
        device_self=none,
        device_total=none,
        flops=none,
        memory_self=size,
        memory_total=size,
        scope=none,
        shapes=none,
        stack=none,
    )
    names.append("[memory]")
    return out, elsewhere


def _host(result: Result, tree: HostTree, memory: Int64) -> _Events:
    device = tree.device_self(result)
    flops = np.zeros(len(tree), np.int64)
    mine = tree.kind == HostKind.OPERATOR
    flops[mine] = operator_flops(result)[tree.row[mine]]
    measured = [name for name in _MEASURED if name in result.counters] if len(result.metric_ranges) else []
    if measured:
        flops = tree.device_self(result, lambda work: _counted(work, measured))
    return _Events(
        name=tree.name,
        is_device=np.zeros(len(tree), bool),
        is_annotation=tree.is_annotation,
        is_nested=tree.nesting.parent >= 0,
        start=tree.start,
        end=tree.end,
        cpu_self=tree.host_self(),
        device_self=device,
        device_total=tree.nesting.subtree_sum(device),
        flops=flops,
        memory_self=memory,
        memory_total=tree.nesting.subtree_sum(memory),
        scope=tree.column(result, "scope"),
        shapes=tree.column(result, "shapes"),
        stack=operator_origins(result, tree, "stack"),
    )


def _counted(work: Table, metrics: list[str]) -> Int64:
    out = np.zeros(len(work), np.float64)
    if work.name == "kernels":
        for metric in metrics:
            out += np.nan_to_num(work[metric], nan=0.0, posinf=0.0, neginf=0.0)
    return np.clip(out, 0, 2.0**62).astype(np.int64)


def _device(result: Result, names: list[str]) -> _Events:
    """GPU work by the names that Kineto gives it; new ones are added to `names`."""
    pieces: list[tuple[Array, Table]] = []
    for found, table in named_work(result):
        pieces.append((found.ids.astype(np.int64) + len(names), table))
        names += found.names
    graphs = result.tables["graph_launches"]
    graphs = graphs.where(traced_graphs(result))
    pieces.append((np.full(len(graphs), len(names)), graphs))
    names.append("CUDA graph")
    start, end = (
        np.concatenate([table[column] for _, table in pieces]).astype(np.int64) for column in ("start", "end")
    )
    count = len(start)
    none, no = np.zeros(count, np.int64), np.zeros(count, bool)
    return _Events(
        name=np.concatenate([name for name, _ in pieces]),
        is_device=np.ones(count, bool),
        is_annotation=no,
        is_nested=no,
        start=start,
        end=end,
        cpu_self=none,
        device_self=end - start,
        device_total=end - start,
        flops=none,
        memory_self=none,
        memory_total=none,
        scope=none,
        shapes=none,
        stack=none,
    )


def _joined(first: _Events, second: _Events) -> _Events:
    return _Events(**{name: np.concatenate([value, getattr(second, name)]) for name, value in vars(first).items()})
