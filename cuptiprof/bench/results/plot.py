"""A picture of a sweep: time over one parameter, a line for each combination of the others."""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cuptiprof.bench.results.parts import Interval, Scalar
from cuptiprof.bench.results.row import Row
from cuptiprof.bench.results.store import Results
from cuptiprof.errors import BenchError, ResultError
from cuptiprof.io.files import replacing_file
from cuptiprof.text.names import printable
from cuptiprof.text.nearest import did_you_mean
from cuptiprof.text.units import UNITS, ns_per

FORMATS = (".svg", ".png")
MAX_LINES = 40
MAX_LEGEND_INSIDE = 6  # lines whose legend finds a place between them
MAX_RATIO_DIFFERENCE = 0.01  # how far the ratios of neighbours may differ for an axis to be geometric
# Names are text: no mathematics between dollar signs; in SVG they stay text.
SETTINGS = {"text.parse_math": False, "svg.fonttype": "none", "svg.hashsalt": "cuptiprof"}
MAX_FULL_DECADES = 4
LOGARITHMIC_SPAN = 20.0  # times that span more than this are shown on a logarithmic axis


def plot_results(results: Results, path: str | os.PathLike[str], x: str) -> None:
    """Write the median time over parameter `x`, its interval as a band, as SVG or PNG by the name of the file.

    The x axis is logarithmic when the values form a geometric series, the y axis when the times span more than a factor of 20.

    Raises:
        BenchError: no such parameter, nothing measured, too many lines, another kind of file, or matplotlib is not installed.
        ResultError: the file cannot be written.
    """
    target = Path(path)
    if target.suffix not in FORMATS:
        raise BenchError(f"--plot {target.name}: no such format", hint=f"one of: {', '.join(FORMATS)}")
    lines = lines_over(results.rows, x)
    matplotlib = load_matplotlib()
    # Equal results give equal files: no date in them, and ids from a fixed seed.
    metadata = {"Date": None} if target.suffix == ".svg" else {"Software": None}
    with matplotlib.rc_context(SETTINGS), replacing_file(target, overwrite=True) as temporary:
        try:
            figure = _draw(lines, x, results)
            figure.savefig(temporary, format=target.suffix[1:], metadata=metadata, dpi=150, bbox_inches="tight")
        except (ValueError, OverflowError) as e:
            raise ResultError(f"cannot draw {target.name}: {e}") from None


def lines_over(rows: Sequence[Row], x: str) -> dict[str, list[tuple[Scalar, Interval]]]:
    """Name of each line -> its points, sorted by `x` where that is a number.

    Raises:
        BenchError: as :func:`plot_results`.
    """
    known = dict.fromkeys(name for row in rows for name in row.params)
    if x not in known:
        raise BenchError(
            f"--x: no parameter {x!r}{did_you_mean(x, known)}", hint=f"there are: {', '.join(known) or 'none'}"
        )
    lines: dict[str, list[tuple[Scalar, Interval]]] = {}
    for row in rows:
        m = row.measurement
        if m is None or x not in row.params or not math.isfinite(m.median):
            continue
        others = [f"{name}={value}" for name, value in row.params.items() if name != x]
        lines.setdefault(" ".join([row.benchmark, *others]), []).append((row.params[x], m.interval))
    if not lines:
        raise BenchError(f"no point with a parameter {x!r} has been measured")
    if len(lines) > MAX_LINES:
        raise BenchError(
            f"{len(lines)} lines are too many for one plot", hint="--filter chooses among the other parameters"
        )
    values = [value for line in lines.values() for value, _ in line]
    if all(_is_number(v) for v in values):
        for line in lines.values():
            line.sort(key=lambda p: float(p[0]))  # type: ignore[arg-type]
    return lines


def load_matplotlib() -> Any:
    """Raises BenchError where it is not installed."""
    try:
        import matplotlib
    except ImportError:
        raise BenchError("plots need matplotlib", hint="pip install 'cuptiprof[plot]'") from None
    return matplotlib


def is_geometric(values: Sequence[float]) -> bool:
    """Whether three values or more, sorted, grow by the same factor: 256, 512, 1024."""
    v = sorted(set(values))
    if len(v) < 3 or v[0] <= 0:
        return False
    steps = [b / a for a, b in itertools.pairwise(v)]
    return max(steps) <= min(steps) * (1 + MAX_RATIO_DIFFERENCE)


def _draw(lines: dict[str, list[tuple[Scalar, Interval]]], x: str, results: Results) -> Any:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    medians = [i.median for line in lines.values() for _, i in line]
    unit = next(u for u in reversed(UNITS[1:]) if max(medians) < 1000 * ns_per(u) or u == "s")
    scale = ns_per(unit)
    figure = Figure(figsize=(8, 5), layout="constrained")
    FigureCanvasAgg(figure)  # no window, whatever the user's settings
    axes = figure.add_subplot()
    values = [value for line in lines.values() for value, _ in line]
    numeric = all(_is_number(v) for v in values)
    places: dict[str, float] = {str(v): float(i) for i, v in enumerate(dict.fromkeys(map(str, values)))}
    for name, line in lines.items():
        at = [float(v) if numeric else places[str(v)] for v, _ in line]  # type: ignore[arg-type]
        (drawn,) = axes.plot(at, [i.median / scale for _, i in line], marker="o", markersize=4)
        drawn.set_label(_shown(name))
        low, high = ([_bound(getattr(i, end), i.median) / scale for _, i in line] for end in ("low", "high"))
        axes.fill_between(at, low, high, color=drawn.get_color(), alpha=0.25, linewidth=0)
    if numeric:
        shown = sorted({float(v) for v in values})  # type: ignore[arg-type]
        if is_geometric(shown):
            base = shown[1] / shown[0]
            axes.set_xscale("log", base=base)
            axes.set_xticks(shown, [f"{v:g}" if v < 1e6 else f"{v:.3g}" for v in shown])
            axes.minorticks_off()
    else:
        axes.set_xticks(list(places.values()), [_shown(text) for text in places])
    if min(medians) > 0 and max(medians) > LOGARITHMIC_SPAN * min(medians):
        _make_logarithmic(axes, min(medians), max(medians))
    else:
        axes.set_ylim(bottom=0)
    axes.set_xlabel(_shown(x))
    axes.set_ylabel(f"time ({unit})")
    axes.grid(alpha=0.3)
    chip = str(results.environment.get("chip", ""))
    axes.set_title(_shown(f"{chip} (SIMULATED)" if results.environment.get("simulated") else chip), fontsize="medium")
    if len(lines) <= MAX_LEGEND_INSIDE:
        axes.legend(fontsize="small")
    else:
        figure.legend(fontsize="x-small", loc="outside right upper")
    return figure


def _make_logarithmic(axes: Any, low: float, high: float) -> None:
    """A logarithmic y axis with numbers written out, at 1, 2 and 5 of each decade where there are few of them."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axes.set_yscale("log")
    few = high < low * 10**MAX_FULL_DECADES
    axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if few else (1.0,)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())


def _shown(text: str) -> str:
    cut = printable(text)
    cut = cut if len(cut) <= 80 else f"{cut[:79]}\u2026"
    return f" {cut}" if cut.startswith("_") else cut  # matplotlib hides labels that begin with an underscore


def _bound(value: float, median: float) -> float:
    return value if math.isfinite(value) else median


def _is_number(value: Scalar) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
