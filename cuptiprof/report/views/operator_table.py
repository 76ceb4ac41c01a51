"""PyTorch's operators in the manner of TensorBoard's operator view: by name, by name and shapes, by module."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from cuptiprof.analysis.arrays.aggregate import Int64
from cuptiprof.analysis.operator_work.module_stats import module_stats
from cuptiprof.analysis.operator_work.operator_stats import GroupBy, operator_stats
from cuptiprof.analysis.trees.region_tree import NO_REGION
from cuptiprof.data.result import Result
from cuptiprof.report.model import Column, View, left_out

_TIMES = (
    Column("percent", "Device(%)", "percent", min_width=7),
    Column("device_self_ns", "Device self", "duration", min_width=9),
    Column("device_total_ns", "Device total", "duration", min_width=9),
    Column("host_self_ns", "Host self", "duration", min_width=9, rank=2),
    Column("host_total_ns", "Host total", "duration", min_width=9, rank=3),
)
_TENSOR = (
    Column("tensor_self_percent", "TC self(%)", "percent", min_width=7, rank=5),
    Column("tensor_total_percent", "TC total(%)", "percent", min_width=7, rank=6),
)
_OPERATORS = (
    *_TIMES,
    Column("calls", "Calls", "count", min_width=6),
    Column("tensor_eligible", "TC eligible", "label", rank=4),
    *_TENSOR,
    Column("shapes", "Input shapes", "text"),
    Column("operator", "Operator", "text"),
)
_MODULES = (
    *_TIMES,
    Column("backward_ns", "In backward", "duration", min_width=9, rank=1),
    Column("operators", "Operators", "count", min_width=6, rank=7),
    *_TENSOR,
    Column("depth", "Depth", "count", human=False),
    Column("path", "Path", "label", human=False),
    Column("module", "Module", "text"),
)
_LEGEND = (
    "Device: kernels, copies and sets that the operator launched; self: not those of the operators it called. (%): of all operators' self.",
    "Host self: without the operators and CUDA calls inside. TC: part of the device time on tensor cores.",
)
_MODULE_LEGEND = (
    "Device: what the operators of the module launched, those of backward included; self: not those of modules in it.",
)
_NO_OPERATORS = 'No operators were recorded: ask for them with sources="operators".'
_NO_MODULES = 'No modules were recorded: ask for them with sources="modules".'


def by_name(result: Result, *, demangle: bool = True, limit: int | None = None) -> View:
    """One row an operator, by falling device time, then by time of the host."""
    return _operators(result, "operator", limit)


def by_shape(result: Result, *, demangle: bool = True, limit: int | None = None) -> View:
    """One row an operator and the shapes of its inputs."""
    return _operators(result, "shape", limit)


def _operators(result: Result, by: GroupBy, limit: int | None) -> View:
    stats = operator_stats(result, by)
    whole = int(stats.device_self.sum())
    columns: dict[str, Sequence[Any]] = {
        "percent": [100.0 * ns / whole if whole else 0.0 for ns in stats.device_self.tolist()],
        "device_self_ns": stats.device_self.tolist(),
        "device_total_ns": stats.device_total.tolist(),
        "host_self_ns": _or_none(stats.host_self, len(stats)),
        "host_total_ns": _or_none(stats.host_total, len(stats)),
        "calls": _or_none(stats.calls, len(stats)),
        "tensor_eligible": ["yes" if eligible else "no" for eligible in stats.eligible],
        "tensor_self_percent": _share(stats.tensor_self, stats.device_self),
        "tensor_total_percent": _share(stats.tensor_total, stats.device_total),
        "shapes": stats.shapes,
        "operator": stats.name,
    }
    host = stats.host_total if stats.host_total is not None else stats.device_total
    order = np.lexsort((-host, -stats.device_self))
    return _view(result, _OPERATORS, columns, order[:limit], len(stats), "operators", _NO_OPERATORS, _LEGEND)


def by_module(result: Result, *, demangle: bool = True, limit: int | None = None) -> View:
    """One row a module, heaviest first, those in it below it."""
    stats = module_stats(result)
    tree, count = stats.tree, len(stats.tree)
    whole = int(stats.device_self.sum())
    names = ["(no module)" if path == (NO_REGION,) else path[-1] for path in tree.paths]
    columns: dict[str, Sequence[Any]] = {
        "percent": [100.0 * ns / whole if whole else 0.0 for ns in stats.device_total.tolist()],
        "device_self_ns": stats.device_self.tolist(),
        "device_total_ns": stats.device_total.tolist(),
        "host_self_ns": _or_none(stats.host_self, count),
        "host_total_ns": _or_none(stats.host_total, count),
        "backward_ns": stats.backward.tolist(),
        "operators": _or_none(stats.operators, count),
        "tensor_self_percent": _share(stats.tensor_self, stats.device_self),
        "tensor_total_percent": _share(stats.tensor_total, stats.device_total),
        "depth": tree.depth.tolist(),
        "path": [".".join(path) if path != (NO_REGION,) else "" for path in tree.paths],
        "module": names,
    }
    known = any(path != (NO_REGION,) for path in tree.paths)
    order = np.asarray(tree.preorder(stats.device_total) if known else [], np.int64)
    shown = order[:limit]
    view = _view(result, _MODULES, columns, shown, len(order), "modules", _NO_MODULES, _MODULE_LEGEND)
    return replace(view, depth_key="depth")


def _view(
    result: Result,
    columns: tuple[Column, ...],
    values: dict[str, Sequence[Any]],
    order: Int64,
    rows: int,
    what: str,
    nothing: str,
    legend: tuple[str, ...],
) -> View:
    data = {key: [column[i] for i in order.tolist()] for key, column in values.items()}
    hidden = {
        key for key in ("calls", "operators", "host_self_ns", "host_total_ns", "shapes") if not any(data.get(key, ()))
    }
    still_open = int(np.count_nonzero(result.operators["is_open"]))
    notes = (f"{still_open} operators had not ended when the session stopped; they end there.",) if still_open else ()
    return View(
        columns=tuple(replace(c, human=False) if c.key in hidden else c for c in columns),
        data=data,
        footers=(*left_out(rows, len(order), what), *notes, *(legend if len(order) else ())),
        notes={"": nothing},
    )


def _or_none(values: Int64 | None, count: int) -> list[int | None]:
    return values.tolist() if values is not None else [None] * count


def _share(part: Int64, whole: Int64) -> list[float]:
    return [100.0 * a / b if b else 0.0 for a, b in zip(part.tolist(), whole.tolist(), strict=True)]
