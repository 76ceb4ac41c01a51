"""Time, operations/s or bytes/s over one parameter, a line for each combination of the others."""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from cuptiprof.bench.results.measurement import Measurement
from cuptiprof.bench.results.parts import Scalar
from cuptiprof.bench.results.row import Row
from cuptiprof.errors import BenchError
from cuptiprof.pictures.canvas import (
    LOGARITHMIC_SPAN,
    ROOF,
    add_legend,
    bound,
    chip_title,
    line_style,
    new_figure,
    number_text,
    rate_unit,
    save_picture,
    scale_y,
    shown,
    time_unit,
)
from cuptiprof.text.nearest import did_you_mean

MAX_LINES = 40
MAX_RATIO_DIFFERENCE = 0.01  # how far the ratios of neighbours may differ for an axis to be geometric
TICK_GAP = 0.01  # of the axis, between two of its numbers
CHARACTER = 0.013  # of the axis, that a digit takes


class Drawn(NamedTuple):
    """A point: its place, its value with the ends of its interval (ns, or 1/s), and the roof above it (NaN: none)."""

    x: Scalar
    value: float
    low: float
    high: float
    roof: float = math.nan


@dataclass(frozen=True)
class Quantity:
    """What can be drawn: `of` a measurement (x left empty; None: it has none), and its unit by the largest."""

    of: Callable[[Measurement], Drawn | None]
    unit: Callable[[float], tuple[str, float]]
    label: str
    missing: str = ""


def _time(m: Measurement) -> Drawn | None:
    i = m.interval
    return Drawn(None, i.median, bound(i.low, i.median), bound(i.high, i.median)) if math.isfinite(i.median) else None


def _rate(m: Measurement, amount: float, roof: float) -> Drawn | None:
    time = _time(m)
    if time is None or not math.isfinite(amount) or min(time.value, time.low) <= 0:
        return None
    per_s = amount * 1e9
    return Drawn(None, per_s / time.value, per_s / time.high, per_s / time.low, roof)


QUANTITIES = {
    "time": Quantity(_time, time_unit, "time"),
    "flops": Quantity(
        lambda m: _rate(m, m.roofline.flops, m.roofline.peak_flop_rate) if m.roofline else None,
        lambda largest: rate_unit(largest, "FLOP/s"),
        "operations",
        "operations: give flops=",
    ),
    "bytes": Quantity(
        lambda m: _rate(m, m.roofline.bytes, m.roofline.peak_byte_rate) if m.roofline else None,
        lambda largest: rate_unit(largest, "B/s"),
        "DRAM bytes",
        "bytes: give bytes=",
    ),
}


def plot_over(
    rows: Sequence[Row], environment: Mapping[str, Any], path: str | os.PathLike[str], x: str, y: str = "time"
) -> None:
    """Write the median time over parameter `x` with its interval as a band, or the rate that follows from it with its roof.

    The x axis is logarithmic when its values form a geometric series or span more than a factor of 20, the y axis when its values do.

    Args:
        y: "time", "flops" (operations/s) or "bytes" (DRAM bytes/s).

    Raises:
        BenchError: no such parameter, nothing measured, no amounts, too many lines.
        ResultError: another kind of file, it cannot be written, or matplotlib is not installed.
    """
    if y not in QUANTITIES:
        raise BenchError(f"y={y!r}: nothing of that name is drawn{did_you_mean(y, QUANTITIES)}", hint=f"one of: {', '.join(QUANTITIES)}")  # fmt: skip
    lines = lines_over(rows, x, y)
    save_picture(path, lambda: _draw(lines, x, QUANTITIES[y], environment))


def lines_over(rows: Sequence[Row], x: str, y: str = "time") -> dict[str, list[Drawn]]:
    """Name of each line -> its points, sorted by `x` where that is a number.

    Raises:
        BenchError: as :func:`plot_over`.
    """
    known = dict.fromkeys(name for row in rows for name in row.params)
    if x not in known:
        raise BenchError(f"no parameter {x!r}{did_you_mean(x, known)}", hint=f"there are: {', '.join(known) or 'none'}")
    lines: dict[str, list[Drawn]] = {}
    any_measured = False
    for row in rows:
        if row.measurement is None or x not in row.params:
            continue
        any_measured = True
        if (point := QUANTITIES[y].of(row.measurement)) is not None:
            others = [f"{name}={value}" for name, value in row.params.items() if name != x]
            lines.setdefault(" ".join([row.benchmark, *others]), []).append(point._replace(x=row.params[x]))
    if not lines:
        if any_measured and QUANTITIES[y].missing:
            raise BenchError(f"no point says how many {QUANTITIES[y].missing} to the benchmark")
        raise BenchError(f"no point with a parameter {x!r} has been measured")
    if len(lines) > MAX_LINES:
        raise BenchError(
            f"{len(lines)} lines are too many for one plot", hint="--filter chooses among the other parameters"
        )
    if all(is_number(p.x) for line in lines.values() for p in line):
        for line in lines.values():
            line.sort(key=lambda p: float(p.x))  # type: ignore[arg-type]
    return lines


def is_geometric(values: Sequence[float]) -> bool:
    """Whether three values or more, sorted, grow by the same factor: 256, 512, 1024."""
    v = sorted(set(values))
    if len(v) < 3 or v[0] <= 0:
        return False
    steps = [b / a for a, b in itertools.pairwise(v)]
    return max(steps) <= min(steps) * (1 + MAX_RATIO_DIFFERENCE)


def is_number(value: Scalar) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _draw(lines: dict[str, list[Drawn]], x: str, quantity: Quantity, environment: Mapping[str, Any]) -> Any:
    points = [p for line in lines.values() for p in line]
    roofs = sorted({p.roof for p in points if math.isfinite(p.roof)})
    unit, scale = quantity.unit(max([p.value for p in points] + roofs))
    figure = new_figure()
    axes = figure.add_subplot()
    numeric = all(is_number(p.x) for p in points)
    places = {text: float(i) for i, text in enumerate(dict.fromkeys(str(p.x) for p in points))}
    for place, (name, line) in enumerate(lines.items()):
        at = [float(p.x) if numeric else places[str(p.x)] for p in line]  # type: ignore[arg-type]
        (drawn,) = axes.plot(at, [p.value / scale for p in line], label=shown(name), **line_style(place))
        low, high = [p.low / scale for p in line], [p.high / scale for p in line]
        axes.fill_between(at, low, high, color=drawn.get_color(), alpha=0.25, linewidth=0)
    for roof in roofs:
        axes.axhline(roof / scale, **ROOF)
        axes.annotate(f"peak {number_text(roof / scale)} {unit}", (0.01, roof / scale), xycoords=("axes fraction", "data"), xytext=(0, 2),
                      textcoords="offset points", fontsize="small", color=ROOF["color"], va="bottom")  # fmt: skip
    if numeric:
        _number_x(axes, sorted({float(p.x) for p in points}))  # type: ignore[arg-type]
    else:
        axes.set_xticks(list(places.values()), [shown(text) for text in places])
    scale_y(axes, [p.value / scale for p in points] + [r / scale for r in roofs])
    axes.margins(y=0.08)
    axes.set_xlabel(shown(x))
    axes.set_ylabel(f"{quantity.label} ({unit})")
    axes.grid(alpha=0.3)
    axes.set_title(chip_title(environment), fontsize="medium")
    add_legend(figure, lines)
    return figure


def _number_x(axes: Any, values: Sequence[float]) -> None:
    """Numbers at the values themselves where they are sizes: as many as do not touch."""
    spans = len(values) > 2 and values[0] > 0 and values[-1] > LOGARITHMIC_SPAN * values[0]
    if not (is_geometric(values) or spans):
        return
    axes.set_xscale("log", base=2)
    length = math.log(values[-1] / values[0])
    ticks = [values[0]]
    for v in values[1:]:
        room = TICK_GAP + CHARACTER * (len(number_text(ticks[-1])) + len(number_text(v))) / 2
        if math.log(v / ticks[-1]) > room * length:
            ticks.append(v)
    axes.set_xticks(ticks, [number_text(v) for v in ticks])
    axes.minorticks_off()
