"""The text of torch.profiler's tables: its headings, widths, units and lines."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

_GAP = "  "
_WIDTH = 12
_FLOPS = ("FLOPs", "KFLOPs", "MFLOPs", "GFLOPs", "TFLOPs", "PFLOPs")
_DEVICE = "CUDA"


@dataclass(frozen=True)
class Headings:
    """Which columns a table has.

    Attributes:
        device, memory, shapes, stack: those of the device's times, of memory, of input shapes, of source lines.
        flops: power of 1,000 in which operations are shown; None: not at all.
    """

    device: bool
    memory: bool
    shapes: bool
    stack: bool
    flops: int | None


def headings(rows: Sequence[Any], *, with_flops: bool, with_memory: bool) -> Headings:
    """Those that torch.profiler would show for these rows."""
    known = [row.flops for row in rows if row.flops > 0] if with_flops else []
    scale = min(int(math.log10(min(known)) / 3), len(_FLOPS) - 1) if known else None
    return Headings(
        device=any(row.self_device_time_total > 0 for row in rows),
        memory=with_memory,
        shapes=any(row.input_shapes for row in rows),
        stack=any(row.stack for row in rows),
        flops=scale,
    )


def table_text(
    rows: Sequence[Any],
    *,
    columns: Headings,
    row_limit: int,
    widths: tuple[int | None, int | None, int | None],
    header: str | None,
    top_level_only: bool,
    time_unit: str | None,
) -> str:
    """The table; "" without rows.

    Args:
        rows: KeyAverage objects in the order in which they are shown.
        row_limit: at most so many rows; negative: all.
        widths: most characters of names, shapes and source lines; None: as many as they have.
    """
    if not rows:
        return ""
    most_name, most_shapes, most_source = widths
    titles = _titles(columns)
    sizes = dict.fromkeys(titles, _WIDTH)
    sizes["Name"] = _fit(max(len(row.key) for row in rows) + 4, most_name)
    if columns.shapes:
        sizes["Input Shapes"] = _fit(max(len(str(row.input_shapes)) for row in rows) + 4, most_shapes)
    if columns.stack:
        sizes["Source Location"] = _fit(max(len(entry) for row in rows for entry in row.stack) + 4, most_source)

    def line(cells: Sequence[str]) -> str:
        sides = ("<" if title == "Source Location" else ">" for title in titles)
        return "".join(
            f"{cell:{side}{sizes[title]}}{_GAP}" for cell, side, title in zip(cells, sides, titles, strict=True)
        )

    rule = "".join("-" * sizes[title] + _GAP for title in titles)
    double = "=" * (len(rule) - len(_GAP))
    sums = _Sums(rows, time_unit)
    out = []
    if header is not None:
        out += [double, header]
    if top_level_only:
        out += [double, "This report only display top-level ops statistics"]
    out += [rule, line(titles), rule]
    shown = [row for row in rows if row.is_top_level] if top_level_only else list(rows)
    for row in shown if row_limit < 0 else shown[:row_limit]:
        cells = sums.cells(row, columns)
        cells["Name"] = _cut(row.key, most_name)
        if columns.shapes:
            cells["Input Shapes"] = str(row.input_shapes)[: sizes["Input Shapes"]]
        source = [_tail(entry, sizes["Source Location"]) for entry in row.stack] if columns.stack else []
        if columns.stack:
            cells["Source Location"] = source[0] if source else ""
        out.append(line([cells[title] for title in titles]))
        if columns.stack:
            out += [
                line([entry if title == "Source Location" else "" for title in titles]) for entry in [*source[1:], ""]
            ]
    out += [rule, f"Self CPU time total: {sums.time(sums.cpu)}"]
    if columns.device:
        out.append(f"Self {_DEVICE} time total: {sums.time(sums.device)}")
    return "".join(f"{text}\n" for text in out)


def torch_duration(us: float, unit: str | None = None) -> str:
    """Microseconds as torch.profiler writes them."""
    if unit == "s" or (unit is None and us >= 1e6):
        return f"{us / 1e6:.3f}s"
    if unit == "ms" or (unit is None and us >= 1e3):
        return f"{us / 1e3:.3f}ms"
    return f"{us:.3f}us"


def torch_size(size: int) -> str:
    """Bytes as torch.profiler writes them."""
    for power, unit in ((3, "GB"), (2, "MB"), (1, "KB")):
        if abs(size) >= 1024**power:
            return f"{size / 1024**power:.2f} {unit}"
    return f"{size} B"


def _titles(columns: Headings) -> list[str]:
    out = ["Name", "Self CPU %", "Self CPU", "CPU total %", "CPU total", "CPU time avg"]
    if columns.device:
        out += [f"Self {_DEVICE}", f"Self {_DEVICE} %", f"{_DEVICE} total", f"{_DEVICE} time avg"]
    if columns.memory:
        out += [f"{_DEVICE} Mem", f"Self {_DEVICE} Mem"]
    out.append("# of Calls")
    out += ["Input Shapes"] * columns.shapes + ["Source Location"] * columns.stack
    return out + ([f"Total {_FLOPS[columns.flops]}"] if columns.flops is not None else [])


class _Sums:
    """Numbers of a row as text, with their shares of the whole; us."""

    def __init__(self, rows: Sequence[Any], unit: str | None) -> None:
        self._unit = unit
        self.cpu = sum(row.self_cpu_time_total for row in rows)
        # What operators launched is the GPU's rows once more.
        self.device = sum(row.self_device_time_total for row in rows if row.is_device)

    def time(self, us: float) -> str:
        return torch_duration(us, self._unit)

    def cells(self, row: Any, columns: Headings) -> dict[str, str]:
        return {
            "Self CPU %": _share(row.self_cpu_time_total, self.cpu),
            "Self CPU": self.time(row.self_cpu_time_total),
            "CPU total %": _share(row.cpu_time_total, self.cpu),
            "CPU total": self.time(row.cpu_time_total),
            "CPU time avg": self.time(row.cpu_time),
            f"Self {_DEVICE}": self.time(row.self_device_time_total),
            f"Self {_DEVICE} %": _share(row.self_device_time_total, self.device),
            f"{_DEVICE} total": self.time(row.device_time_total),
            f"{_DEVICE} time avg": self.time(row.device_time),
            f"{_DEVICE} Mem": torch_size(row.device_memory_usage),
            f"Self {_DEVICE} Mem": torch_size(row.self_device_memory_usage),
            "# of Calls": str(row.count),
            **_operations(row.flops, columns.flops),
        }


def _operations(flops: int, scale: int | None) -> dict[str, str]:
    if scale is None:
        return {}
    return {f"Total {_FLOPS[scale]}": f"{flops / 1000**scale:8.3f}" if flops > 0 else "--"}


def _share(part: float, whole: float) -> str:
    return f"{part * 100.0 / whole:.2f}%" if whole else "NaN"


def _fit(width: int, most: int | None) -> int:
    return width if most is None else min(width, most)


def _cut(name: str, most: int | None) -> str:
    return name[: most - 3] + "..." if most is not None and len(name) >= most - 3 else name


def _tail(path: str, width: int) -> str:
    """The end of a path that is too long for its column."""
    if len(path) <= width:
        return path
    end = path[len(path) - width :]
    return "..." + end[3:] if len(end) > 3 else end
