"""A result as torch's own FunctionEvent objects: what ``prof.events()`` gives."""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterator
from typing import Any

import numpy as np

from cuptiprof.analysis.counter_values.kernel_counters import match
from cuptiprof.analysis.operator_work.flops import operator_flops
from cuptiprof.analysis.operator_work.key_stats import flat_shapes
from cuptiprof.analysis.operator_work.operator_stacks import frame_texts, operator_origins
from cuptiprof.analysis.trees.host_tree import HostKind, host_tree
from cuptiprof.analysis.work.gpu_work import named_work
from cuptiprof.data.result import Result
from cuptiprof.torch_profiler.from_torch import DeviceType, function_event_classes


def function_events(result: Result) -> Any:
    """torch.autograd.profiler_util.EventList: operators, annotations, steps, CUDA calls and GPU work, nested by torch itself.

    Times are us since the first of them. One Python object an event, as torch makes them.

    Raises:
        SessionError: torch is not installed.
    """
    classes = function_event_classes()
    result = result.timed()
    events = [*_host_events(result, classes), *_device_events(result, classes)]
    begin = min((event.time_range.start for event in events), default=0)
    for event in events:
        event.time_range = classes.Interval(
            (event.time_range.start - begin) / 1000, (event.time_range.end - begin) / 1000
        )
    events.sort(key=lambda event: (event.time_range.start, -event.time_range.end))
    out = classes.EventList(events, use_device="cuda", profile_memory=False, with_flops=True)
    out._build_tree()
    return out


def _host_events(result: Result, classes: Any) -> Iterator[Any]:
    tree = host_tree(result, merged=False)
    stacks = operator_origins(result, tree, "stack")
    texts = frame_texts(result, stacks)
    operators = result.operators
    mine = tree.kind == HostKind.OPERATOR
    flops = np.zeros(len(tree), np.int64)
    flops[mine] = operator_flops(result)[tree.row[mine]]
    made = match(tree.column(result, "forward", -1), operators["instance"])
    forward_thread = (
        np.where(made >= 0, operators["thread"][np.maximum(made, 0)], tree.thread) if len(operators) else tree.thread
    )
    kernels = _launched(result, tree)
    columns = (
        tree.column(result, "instance"),
        tree.name,
        tree.thread,
        tree.start,
        tree.end,
        forward_thread,
        tree.column(result, "shapes"),
        stacks,
        tree.column(result, "scope"),
        tree.column(result, "sequence"),
        flops,
        tree.is_annotation,
    )
    for place, row in enumerate(zip(*(column.tolist() for column in columns), strict=True)):
        key, name, thread, start, end, forward, shapes, stack, scope, sequence, operations, annotation = row
        event = _event(
            classes,
            id=key,
            name=tree.names[name],
            trace_name=tree.names[name],
            thread=thread,
            start_us=start,
            end_us=end,
            fwd_thread=forward,
            input_shapes=_shapes(flat_shapes(str(operators.strings[shapes]))),
            structured_input_shapes=_shapes(str(operators.strings[shapes])),
            stack=list(texts[stack]),
            scope=scope,
            sequence_nr=sequence - 1,
            flops=operations,
            is_user_annotation=annotation,
            device_type=DeviceType.CPU,
        )
        for kernel in kernels.get(place, ()):
            event.append_kernel(*kernel)
        yield event


def _launched(result: Result, tree: Any) -> dict[int, list[tuple[str, int, float]]]:
    """Place -> name, device and us of what it launched."""
    out: dict[int, list[tuple[str, int, float]]] = {}
    for name, table in _work(result):
        places = tree.places(result, table)
        for place, text, device, ns in zip(
            places.tolist(), name, table["device"].tolist(), table["duration"].tolist(), strict=True
        ):
            if place >= 0:
                out.setdefault(place, []).append((text, device, ns / 1000))
    return out


def _device_events(result: Result, classes: Any) -> Iterator[Any]:
    for names, table in _work(result):
        for i, name in enumerate(names):
            yield _event(
                classes,
                id=int(table["correlation_id"][i]),
                name=name,
                trace_name=name,
                thread=int(table["stream"][i]),
                start_us=int(table["start"][i]),
                end_us=int(table["end"][i]),
                fwd_thread=0,
                input_shapes=[],
                stack=[],
                scope=0,
                sequence_nr=-1,
                flops=0,
                is_user_annotation=False,
                device_type=DeviceType.CUDA,
                device_index=int(table["device"][i]),
            )


def _work(result: Result) -> Iterator[tuple[list[str], Any]]:
    """Tables of GPU work, and Kineto's name of each row."""
    for names, table in named_work(result):
        yield [names.names[i] for i in names.ids.tolist()], table


def _event(classes: Any, **fields: Any) -> Any:
    """torch's object, of the fields that the torch at hand has."""
    known = inspect.signature(classes.FunctionEvent.__init__).parameters
    fields = {"overload_name": "", "use_device": "cuda", **fields}
    return classes.FunctionEvent(**{name: value for name, value in fields.items() if name in known})


def _shapes(text: str) -> Any:
    return json.loads(text) if text else []
