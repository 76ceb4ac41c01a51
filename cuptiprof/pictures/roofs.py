"""The roofs of a roofline, both axes logarithmic (Williams 2009)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from cuptiprof.pictures.canvas import ROOF, number_text, number_ticks, rate_unit

MARGIN = 3.0  # of the axes beyond what is in them


@dataclass(frozen=True)
class Roofs:
    """Names and peaks: of memory bytes/s, of compute operations/s."""

    memory: Sequence[tuple[str, float]]
    compute: Sequence[tuple[str, float]]

    def ridges(self) -> list[float]:
        """Operations a byte at which two of them meet."""
        return [peak / band for _, peak in self.compute for _, band in self.memory]


def roofline_axes(axes: Any, roofs: Roofs, intensity: Sequence[float], rates: Sequence[float]) -> float:
    """Axes around the points (operations a byte, operations/s) and the roofs, and these; what a unit of the y axis is in operations/s."""
    peaks = [peak for _, peak in roofs.compute]
    reached = [*intensity, *roofs.ridges()]
    left, right = min(reached) / MARGIN, max(reached) * MARGIN
    low = min([*rates, *(left * band for _, band in roofs.memory)]) / MARGIN
    high = max([*rates, *peaks]) * MARGIN
    unit, scale = rate_unit(max([*rates, *peaks]), "FLOP/s")
    _draw(axes, roofs, left, right, unit, scale)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(left, right)
    axes.set_ylim(low / scale, high / scale)
    number_ticks(axes.xaxis, left, right)
    number_ticks(axes.yaxis, low / scale, high / scale)
    axes.set_ylabel(f"operations ({unit})")
    axes.grid(alpha=0.3)
    return scale


def _draw(axes: Any, roofs: Roofs, left: float, right: float, unit: str, scale: float) -> None:
    highest = max((peak for _, peak in roofs.compute), default=math.inf)
    steepest = max((band for _, band in roofs.memory), default=math.inf)
    for name, band in roofs.memory:
        byte_unit, per_byte = rate_unit(band, "B/s")
        end = min(highest / band, right)
        axes.plot([left, end], [left * band / scale, end * band / scale], **ROOF)
        # Written along the line (of slope `band` in data), in the middle of what is seen of it.
        middle = math.sqrt(left * end)
        axes.text(middle, 1.12 * middle * band / scale, f"{name} {number_text(band / per_byte)} {byte_unit}", ha="center", va="bottom", fontsize="small",
                  color=ROOF["color"], rotation=math.degrees(math.atan(band / scale)), rotation_mode="anchor",
                  transform_rotates_text=True)  # fmt: skip
    for name, peak in roofs.compute:
        start = peak / steepest if roofs.memory else left
        axes.plot([start, right], [peak / scale] * 2, **ROOF)
        axes.annotate(f"{name} {number_text(peak / scale)} {unit}", (right, peak / scale), xytext=(-4, 3), textcoords="offset points",
                      ha="right", va="bottom", fontsize="small", color=ROOF["color"])  # fmt: skip
