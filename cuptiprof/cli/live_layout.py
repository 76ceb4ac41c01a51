"""The numbers of a session that runs, as lines for a terminal of whatever size."""

from __future__ import annotations

from dataclasses import dataclass

from cuptiprof.text.names import display_width
from cuptiprof.text.short_names import cut_middle, shorten
from cuptiprof.text.units import format_byte_rate, format_bytes, format_time
from cuptiprof.watch.live_figures import LiveFigures, LiveSum

_NARROW = 70
"""Cells below which a row has its GPU time and its name only."""
_REGIONS = 3
"""The part of the rows that regions may have: one in so many."""


@dataclass(frozen=True)
class LiveLine:
    """A line of text, in at most the width that was asked for."""

    text: str
    is_heading: bool = False


def live_lines(figures: LiveFigures, width: int, height: int) -> list[LiveLine]:
    """At most ``height`` lines of at most ``width`` cells: what is most needed first, then as many kernels and regions as fit."""
    head = [LiveLine(cut_middle(text, width)) for text in _head(figures) if text]
    head[0] = LiveLine(head[0].text, True)
    room = height - len(head)
    if room < 3:  # a title and a row, or nothing
        return head[:height]
    with_regions = [r for r in figures.regions if r.name]
    of_regions = min(len(with_regions), max(room // _REGIONS - 1, 0))
    of_kernels = room - 1 - (of_regions + 1 if of_regions else 0)
    lines = _table("Kernel", figures.kernels[:of_kernels], figures.kernel_names, figures, width, True)
    if of_regions:
        lines += _table("Region", tuple(with_regions[:of_regions]), len(with_regions), figures, width, False)
    return head + lines


def one_line(figures: LiveFigures) -> str:
    """All that fits into a line of a log."""
    if figures.state == "stopped":
        return ", ".join(
            [f"ended after {figures.elapsed_s:.1f} s", *_gpus(figures), _launches(figures), *_losses(figures)]
        ) + _marks(figures)
    parts = [f"{figures.elapsed_s:.0f} s", *_gpus(figures), _launches(figures), *_copies(figures)]
    if figures.kernels:
        most = max(figures.kernels, key=lambda k: k.recent_ns)
        parts.append(f"most: {cut_middle(most.name, 40)} {_now(most, figures):.0f}%")
    return ", ".join([*parts, *_losses(figures)]) + _marks(figures)


def _head(figures: LiveFigures) -> list[str]:
    return [
        f"cuptiprof:  {figures.elapsed_s:.0f} s  {figures.state}{_marks(figures)}  {figures.program} ({figures.pid})",
        "   ".join([*(_gpus(figures) or ["no GPU work yet"]), _launches(figures)]),
        "   ".join(_losses(figures)),
        "   ".join([*_copies(figures), *_memory(figures)]),
    ]


def _marks(figures: LiveFigures) -> str:
    return "  (SIMULATED)" if figures.simulated else ""


def _gpus(figures: LiveFigures) -> list[str]:
    if figures.state == "stopped":
        return [f"GPU {g.device} {g.pct:.1f}% busy" for g in figures.gpus]
    return [f"GPU {g.device} {g.recent_pct:.1f}% busy ({g.pct:.1f}% so far)" for g in figures.gpus]


def _launches(figures: LiveFigures) -> str:
    if figures.state == "stopped":
        return f"{figures.launches:,} launches"
    return f"{figures.recent_launches / figures.interval_s:,.0f} launches/s ({figures.launches:,})"


def _copies(figures: LiveFigures) -> list[str]:
    return [
        f"{c.name} {format_byte_rate(c.recent_bytes / figures.interval_s)} ({format_bytes(c.bytes)})"
        if c.recent_bytes and figures.state != "stopped"
        else f"{c.name} {format_bytes(c.bytes)}"
        for c in (*figures.copies, *figures.sets)
    ]


def _memory(figures: LiveFigures) -> list[str]:
    allocated = [f"GPU memory {format_bytes(figures.memory_bytes)}"] if figures.memory_bytes is not None else []
    return [*allocated, f"kept {format_bytes(figures.kept_bytes)} of {format_bytes(figures.budget_bytes)}"]


def _losses(figures: LiveFigures) -> list[str]:
    lost = ", ".join(f"{n:,} {name}" for name, n in figures.losses.items())
    missed = f"{figures.missed:,} rows not shown here" if figures.missed else ""
    return [*([f"Lost: {lost}"] if lost else []), *([missed] if missed else [])]


def _now(row: LiveSum, figures: LiveFigures) -> float:
    """Percent of the last interval in which it ran; of several at once more than 100."""
    return row.recent_ns / figures.interval_s / 1e7


def _table(
    title: str, rows: tuple[LiveSum, ...], names: int, figures: LiveFigures, width: int, is_function: bool
) -> list[LiveLine]:
    narrow = width < _NARROW
    shown = slice(1 if figures.state == "stopped" else 0, 2 if narrow else 4)
    titles = ["Now", "Time", "Calls", "Avg"][shown]
    cells = [
        [f"{_now(r, figures):.1f}%", format_time(r.ns), f"{r.count:,}", format_time(r.ns / max(r.count, 1))][shown]
        for r in rows
    ]
    widths = [max(len(line[i]) for line in (titles, *cells)) for i in range(len(titles))]
    left = max(width - sum(widths) - 2 * len(widths), 1)
    short = shorten((r.name for r in rows), left) if is_function else {r.name: cut_middle(r.name, left) for r in rows}
    more = f" ({len(rows)} of {names})" if names > len(rows) else ""
    lines = [LiveLine(_row(titles, widths, cut_middle(title + more, left)), True)]
    lines += [LiveLine(_row(c, widths, short[r.name])) for c, r in zip(cells, rows, strict=True)]
    return [line for line in lines if display_width(line.text) <= width]


def _row(cells: list[str], widths: list[int], name: str) -> str:
    return "".join(f"{cell:>{size}}  " for cell, size in zip(cells, widths, strict=True)) + name
