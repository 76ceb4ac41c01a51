"""Pictures of a run made of boxes: the flame graph, and when each stream worked."""

from __future__ import annotations

from typing import Any

import numpy as np

from cuptiprof.analysis.arrays.aggregate import Int64
from cuptiprof.analysis.arrays.intervals import union_of
from cuptiprof.analysis.trees.flame import STACK_WORDS, StackBy, usual_stacks
from cuptiprof.analysis.trees.flame_tree import flame_tree
from cuptiprof.data.result import Result, gpu_span
from cuptiprof.errors import ResultError
from cuptiprof.pictures.canvas import new_figure, shown, time_unit
from cuptiprof.text.units import format_time

_LEAST = 1 / 1000  # of the width: narrower boxes are not drawn
_LETTER = 1 / 130  # of the width
_COLORS = 10
_LANES = 40
_KINDS = (("kernels", "kernels", "C0"), ("memcpys", "copies", "C1"), ("memsets", "sets", "C2"))


def flame(result: Result, by: StackBy | None = None) -> Any:
    """GPU time by what launched it, outermost at the top; `by`: "region", "module", "operator", "python"; None: Python's stacks where there are
    any, else regions."""
    by = by or usual_stacks(result)
    if by not in STACK_WORDS:
        raise ResultError(f"no flame graph by {by!r}", hint=f"one of: {', '.join(STACK_WORDS)}")
    tree = flame_tree(result, by)
    if tree is None or not tree.whole:
        raise ResultError(f"nothing says which {STACK_WORDS[by]} launched work")
    start = _starts(tree.depth, tree.total)
    levels = int(tree.depth.max()) + 1
    figure = new_figure(11, 0.7 + 0.26 * levels)
    axes = figure.add_subplot()
    for row in np.flatnonzero(tree.total >= _LEAST * tree.whole).tolist():
        x, width, name = start[row] / tree.whole, tree.total[row] / tree.whole, shown(tree.names[row])
        color = f"C{sum(map(ord, tree.names[row][:200])) % _COLORS}"
        y = -int(tree.depth[row])
        axes.barh(y, width, 0.94, x, color=color, alpha=0.45, linewidth=0.4, edgecolor="white")
        if (letters := int(width / _LETTER)) > 3:
            text = name if len(name) <= letters else f"{name[: letters - 1]}\u2026"
            axes.text(x + 0.002, y, text, va="center", fontsize=7, clip_on=True)
    axes.set_xlim(0, 1)
    axes.set_ylim(0.5 - levels, 0.5)
    axes.set_yticks([])
    axes.set_xticks([0, 0.25, 0.5, 0.75, 1], ["0", "25 %", "50 %", "75 %", "100 %"])
    axes.set_xlabel(f"GPU time by {STACK_WORDS[by]}, of {format_time(tree.whole)}")
    axes.spines[["left", "right", "top"]].set_visible(False)
    return figure


def _starts(depth: Int64, total: Int64) -> Int64:
    """Left end of each box: what lies in one follows it, side by side."""
    filled = np.zeros(int(depth.max()) + 2, np.int64)  # by depth, up to where the boxes there go
    out = np.zeros(len(depth), np.int64)
    for row, (level, ns) in enumerate(zip(depth.tolist(), total.tolist(), strict=True)):
        out[row] = filled[level]
        filled[level + 1] = filled[level]
        filled[level] += ns
    return out


def timeline(result: Result) -> Any:
    """When each stream ran kernels, copies and sets; times closer than a point of the picture are one."""
    first, last = gpu_span(result)
    lanes = sorted({(int(d), int(s)) for name, _, _ in _KINDS
                    for d, s in zip(result.tables[name]["device"], result.tables[name]["stream"], strict=True)})  # fmt: skip
    if not lanes or last <= first:
        raise ResultError("no GPU work was recorded")
    shown_lanes = lanes[:_LANES]
    unit, scale = time_unit(float(last - first))
    figure = new_figure(11, 1.0 + 0.35 * len(shown_lanes))
    axes = figure.add_subplot()
    for place, (device, stream) in enumerate(shown_lanes):
        for name, label, color in _KINDS:
            table = result.tables[name].timed()
            mine = (table["device"] == device) & (table["stream"] == stream)
            begin, width = _spans(table["start"][mine], table["end"][mine], (last - first) // 2000)
            if len(begin):
                spans = list(zip(((begin - first) / scale).tolist(), (width / scale).tolist(), strict=True))
                axes.broken_barh(spans, (-place - 0.4, 0.8), color=color, linewidth=0, label=label)
    axes.set_yticks([-i for i in range(len(shown_lanes))], [f"GPU {d}, stream {s}" for d, s in shown_lanes], fontsize="small")  # fmt: skip
    axes.set_xlim(0, (last - first) / scale)
    axes.set_xlabel(f"time ({unit})" + (f"; {len(lanes) - _LANES} more streams" if len(lanes) > _LANES else ""))
    handles = dict(zip(*reversed(axes.get_legend_handles_labels()), strict=True))
    figure.legend(handles.values(), handles.keys(), fontsize="small", loc="outside upper right", ncols=3)
    return figure


def _spans(start: Int64, end: Int64, gap: int) -> tuple[Int64, Int64]:
    """Beginnings and lengths of the union, of which gaps up to `gap` (ns) are closed."""
    found = union_of(start, end + gap)
    return found.start, np.maximum(found.end - gap - found.start, gap)
