"""Allocated and reserved bytes of PyTorch's allocator over time, as torch's ``export_memory_timeline`` writes it: JSON, or a page."""

from __future__ import annotations

import gzip
import html
import json
import os
from pathlib import Path

import numpy as np

from cuptiprof.analysis.allocators.allocator_memory import MemoryTimeline, devices, memory_timeline
from cuptiprof.analysis.work.counted import device_label, device_labels
from cuptiprof.data.result import Progress, Result
from cuptiprof.data.tables import Array
from cuptiprof.errors import ResultError
from cuptiprof.io.files import replacing_file
from cuptiprof.text.units import format_bytes, format_time

_CATEGORIES = 8
"""torch's: parameter, optimizer state, input, temporary, activation, gradient, autograd detail, unknown. The allocator knows of no
category, so that all is in the last."""
_WIDTH, _HEIGHT, _POINTS = 960, 320, 4000


def export_memory_timeline(result: Result, path: str | os.PathLike[str], device: int | None = None) -> None:
    """Write a device's memory over time (default: the first one's); a file that is there is replaced, as torch does.

    ``.html``: a page with both curves. ``.json``, ``.json.gz``: ``[times, sizes]`` as torch writes it, times in us, sizes one list of
    bytes a time: 0 and one number a category of torch's, of which only the last is known here.

    Raises:
        ResultError: another suffix, no history of that device, or it cannot be written.
    """
    name = os.fspath(path)
    if not name.endswith((".html", ".json", ".json.gz")) or name.endswith(".raw.json.gz"):
        raise ResultError(
            f"{name}: a memory timeline is .html, .json or .json.gz", hint="single events: docs/memory.md"
        )
    with replacing_file(path, overwrite=True) as temporary:
        _write(result, temporary, device, page=name.endswith(".html"), compress=name.endswith(".gz"))


def write_page(result: Result, path: Path, compress: bool, progress: Progress | None = None) -> None:
    """As a format of ``Result.export``: of the first device."""
    del progress
    _write(result, path, None, page=True, compress=compress)


def _write(result: Result, path: Path, device: int | None, *, page: bool, compress: bool) -> None:
    found = devices(result)
    if device is None:
        device = found[0] if found else 0
    if device not in found:
        raise ResultError(
            f"no history of the allocator of device {device}", hint='profile(activities=["allocator", ...])'
        )
    timeline = memory_timeline(result, device)
    if page:
        path.write_text(_page(result, timeline), encoding="utf-8")
        return
    text = json.dumps(_json(timeline))
    path.write_bytes(gzip.compress(text.encode()) if compress else text.encode())


def _json(timeline: MemoryTimeline) -> list[list[object]]:
    """torch's two lists; of several events in a microsecond the last."""
    time = timeline.time // 1000
    last = np.flatnonzero(np.r_[time[1:] != time[:-1], True]) if len(time) else np.zeros(0, np.int64)
    sizes: list[object] = [[0] * _CATEGORIES + [size] for size in timeline.allocated[last].tolist()]
    return [list(time[last].tolist()), sizes]


def _page(result: Result, timeline: MemoryTimeline) -> str:
    label = device_label(device_labels(result), timeline.device)
    peak, at = timeline.peak()
    top = max(int(timeline.reserved.max(initial=timeline.before[1])), peak, 1)
    begin = int(timeline.time[0]) if len(timeline.time) else 0
    length = max(int(timeline.time[-1]) - begin, 1) if len(timeline.time) else 1
    curves = [
        _curve(timeline.time - begin, level, before, length, top, css)
        for level, before, css in (
            (timeline.reserved, timeline.before[1], "reserved"),
            (timeline.allocated, timeline.before[0], "allocated"),
        )
    ]
    when = f" at {format_time(int(timeline.time[at]) - begin)}" if at >= 0 else ""
    title = html.escape(f"Memory of {label}")
    return f"""<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title><style>
body {{ font: 14px sans-serif; margin: 2em; }}
svg {{ border: 1px solid #888; background: #fff; max-width: 100%; }}
.reserved {{ fill: #ddd; stroke: #888; }} .allocated {{ fill: #8ab4e8; stroke: #1f5fa8; }}
</style></head><body>
<h1>{title}</h1>
<p>Most allocated: {html.escape(format_bytes(peak))}{html.escape(when)}. Grey: reserved by PyTorch's allocator; blue: allocated to tensors.
The whole height is {html.escape(format_bytes(top))}, the whole width {html.escape(format_time(length))}.</p>
<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" height="{_HEIGHT}" role="img" aria-label="{title}">{"".join(curves)}</svg>
</body></html>
"""


def _curve(time: Array, level: Array, before: int, length: int, top: int, css: str) -> str:
    """Steps; where there are more events than points, the highest level of each stretch."""
    stretch = -(-max(len(time), 1) // _POINTS)
    starts = np.arange(0, len(time), stretch)
    highest = np.maximum.reduceat(level, starts) if len(time) else level
    points, y = [(0.0, float(_HEIGHT)), (0.0, _y(before, top))], _y(before, top)
    for t, value in zip((time[starts] / length * _WIDTH).tolist(), highest.tolist(), strict=True):
        points.append((t, y))
        y = _y(value, top)
        points.append((t, y))
    points += [(float(_WIDTH), y), (float(_WIDTH), float(_HEIGHT))]
    return f'<polygon class="{css}" points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in points)}"/>'


def _y(value: int, top: int) -> float:
    return _HEIGHT * (1 - value / top)
