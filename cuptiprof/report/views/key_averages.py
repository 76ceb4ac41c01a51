"""torch.profiler's ``key_averages()``: objects with its names, in its units."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from cuptiprof.analysis.operator_work.key_stats import key_stats
from cuptiprof.data.result import Result
from cuptiprof.errors import ResultError
from cuptiprof.report.render.torch_table import headings, table_text, torch_duration
from cuptiprof.text.html import html_text
from cuptiprof.text.nearest import nearest

_ROWS_IN_A_REPL = 100


def _average(field: str, doc: str) -> Any:
    return property(lambda self: getattr(self, field) / self.count if self.count else 0.0, doc=doc)


def _same(field: str) -> Any:
    return property(lambda self: getattr(self, field), doc=f"{field}, by torch.profiler's older name")


def _text(field: str) -> Any:
    return property(lambda self: torch_duration(getattr(self, field)), doc=f"{field} with its unit")


@dataclass(frozen=True)
class KeyAverage:
    """One operator, annotation, CUDA call, kernel, copy kind or set. Times in us and sizes in bytes, summed over all calls, by the
    names of torch.profiler's FunctionEventAvg.

    Attributes:
        key: the name.
        count: calls.
        cpu_time_total, self_cpu_time_total: of the host, with and without what lies inside; 0 for GPU work.
        device_time_total, self_device_time_total: of the GPU work launched by it and inside it, or by itself; of GPU work its own.
        flops: operations by torch's formulas, or counted (``flop_count_*``); 0: not known.
        device_memory_usage, self_device_memory_usage: bytes that torch's caching allocator gave less those it took back.
        input_shapes: where it was asked for by ``group_by_input_shape``, else "". stack: frames, by ``group_by_stack_n``.
        scope: at::RecordScope. is_user_annotation: a name that the user gave. is_top_level: the first of them lay in no other.
        is_device: GPU work.
    """

    key: str
    count: int
    cpu_time_total: float
    self_cpu_time_total: float
    device_time_total: float
    self_device_time_total: float
    flops: int = 0
    device_memory_usage: int = 0
    self_device_memory_usage: int = 0
    input_shapes: Any = ""
    stack: tuple[str, ...] = ()
    scope: int = 0
    is_user_annotation: bool = False
    is_top_level: bool = True
    is_device: bool = False

    cpu_time = _average("cpu_time_total", "us a call")
    device_time = _average("device_time_total", "us a call")
    cuda_time = _same("device_time")
    cuda_time_total = _same("device_time_total")
    self_cuda_time_total = _same("self_device_time_total")
    cuda_memory_usage = _same("device_memory_usage")
    self_cuda_memory_usage = _same("self_device_memory_usage")
    cpu_time_str = _text("cpu_time")
    cpu_time_total_str = _text("cpu_time_total")
    self_cpu_time_total_str = _text("self_cpu_time_total")
    device_time_str = _text("device_time")
    device_time_total_str = _text("device_time_total")
    self_device_time_total_str = _text("self_device_time_total")

    @property
    def device_type(self) -> Any:
        """torch's DeviceType where torch is imported, else "CPU" or "CUDA"."""
        name = "CUDA" if self.is_device else "CPU"
        types = getattr(sys.modules.get("torch.autograd"), "DeviceType", None)
        return getattr(types, name) if types is not None else name


_SORT_KEYS = (
    "cpu_time",
    "cpu_time_total",
    "self_cpu_time_total",
    "device_time",
    "device_time_total",
    "self_device_time_total",
    "device_memory_usage",
    "self_device_memory_usage",
    "flops",
    "count",
)
"""What a table can be sorted by; "cuda" for "device" is taken, too."""


_SUMS = (
    "cpu_time_total", "self_cpu_time_total", "device_time_total", "self_device_time_total", "count", "flops",
    "device_memory_usage", "self_device_memory_usage",
)  # fmt: skip


def _sums(rows: Iterable[KeyAverage]) -> dict[str, Any]:
    rows = list(rows)
    return {name: sum(getattr(row, name) for row in rows) for name in _SUMS}


class KeyAverages(list[KeyAverage]):
    """Rows as torch.profiler makes them: one a name of operators, annotations, steps and CUDA calls, and one a kernel, kind of
    copy or set."""

    def __init__(self, rows: Iterable[KeyAverage], *, with_flops: bool = False, with_memory: bool = False) -> None:
        super().__init__(rows)
        self._with_flops, self._with_memory = with_flops, with_memory

    @property
    def self_cpu_time_total(self) -> float:
        """us of all rows."""
        return sum(row.self_cpu_time_total for row in self)

    def table(
        self,
        sort_by: str | None = None,
        row_limit: int = 100,
        max_src_column_width: int | None = 75,
        max_name_column_width: int | None = 55,
        max_shapes_column_width: int | None = 80,
        header: str | None = None,
        top_level_events_only: bool = False,
        time_unit: str | None = None,
    ) -> str:
        """The rows as torch.profiler prints them, by falling `sort_by` (default: in order of first appearance).

        Args:
            sort_by: "self_cuda_time_total", "cpu_time_total", "count", ... as torch.profiler's; "device" and "cuda" are the same.
            row_limit: at most so many; -1: all.
            header: a line above. time_unit: "s", "ms", "us" for all times.
            top_level_events_only: only what lies in nothing else.

        Raises:
            ResultError: an unknown key or unit.
        """
        rows = list(self)
        if sort_by is not None:
            key = str(sort_by).replace("cuda", "device")
            if key not in _SORT_KEYS:
                near = nearest(key, _SORT_KEYS, 1)
                hint = f"did you mean {near[0]!r}?" if near else f"one of: {', '.join(_SORT_KEYS)}"
                raise ResultError(f"cannot sort by {sort_by!r}", hint=hint)
            rows.sort(key=lambda row: getattr(row, key), reverse=True)
        if time_unit not in (None, "s", "ms", "us"):
            raise ResultError(f"unknown time_unit={time_unit!r}", hint="one of: s, ms, us")
        return table_text(
            rows,
            columns=headings(self, with_flops=self._with_flops, with_memory=self._with_memory),
            row_limit=row_limit,
            widths=(max_name_column_width, max_shapes_column_width, max_src_column_width),
            header=header,
            top_level_only=top_level_events_only,
            time_unit=time_unit,
        )

    def total_average(self) -> KeyAverage:
        """All rows added up, by the name "Total"."""
        return KeyAverage(key="Total", **_sums(self))

    @classmethod
    def of_cycles(cls, cycles: Sequence[KeyAverages]) -> KeyAverages:
        """Those of several cycles as one's: equal rows added up, in order of first appearance."""
        same: dict[tuple[Any, ...], list[KeyAverage]] = {}
        for row in (row for cycle in cycles for row in cycle):
            what = (row.key, repr(row.input_shapes), row.stack, row.is_user_annotation, row.is_device)
            same.setdefault(what, []).append(row)
        return cls(
            (replace(rows[0], **_sums(rows)) for rows in same.values()),
            with_flops=any(cycle._with_flops for cycle in cycles),
            with_memory=any(cycle._with_memory for cycle in cycles),
        )

    def __repr__(self) -> str:
        return self.table(row_limit=_ROWS_IN_A_REPL)

    __str__ = __repr__

    def _repr_html_(self) -> str:
        return html_text(self.table(row_limit=_ROWS_IN_A_REPL))


def key_averages(result: Result, group_by_input_shape: bool = False, group_by_stack_n: int = 0) -> KeyAverages:
    """See :meth:`cuptiprof.Result.key_averages`.

    Raises:
        ResultError: a negative number of frames.
    """
    if group_by_stack_n < 0:
        raise ResultError(f"group_by_stack_n={group_by_stack_n} is negative", hint="the number of frames to tell apart")
    stats = key_stats(result.timed(), group_by_input_shape, group_by_stack_n)
    asked = result.metadata.get("torch_profiler") or {}
    columns = {
        "key": stats.name,
        "count": stats.count.tolist(),
        "cpu_time_total": (stats.cpu_total / 1000).tolist(),
        "self_cpu_time_total": (stats.cpu_self / 1000).tolist(),
        "device_time_total": (stats.device_total / 1000).tolist(),
        "self_device_time_total": (stats.device_self / 1000).tolist(),
        "flops": stats.flops.tolist(),
        "device_memory_usage": stats.memory_total.tolist(),
        "self_device_memory_usage": stats.memory_self.tolist(),
        "input_shapes": [_shapes(text) if group_by_input_shape else "" for text in stats.shapes],
        "stack": stats.stack,
        "scope": stats.scope.tolist(),
        "is_user_annotation": stats.is_annotation.tolist(),
        "is_top_level": (~stats.is_nested).tolist(),
        "is_device": stats.is_device.tolist(),
    }
    rows = [KeyAverage(**dict(zip(columns, row, strict=True))) for row in zip(*columns.values(), strict=True)]
    return KeyAverages(
        rows,
        with_flops=bool(asked.get("with_flops", True)),
        with_memory=bool(len(result.tables["allocator_events"])),
    )


def _shapes(text: str) -> Any:
    """The list that was recorded; what is no JSON (a damaged file) as it is."""
    try:
        return json.loads(text) if text else []
    except (ValueError, RecursionError):
        return text
