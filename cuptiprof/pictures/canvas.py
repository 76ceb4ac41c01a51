"""What all pictures have in common: matplotlib, the file, axes whose numbers read as numbers, names that are text."""

from __future__ import annotations

import io
import math
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from cuptiprof.errors import ResultError
from cuptiprof.io.files import replacing_file
from cuptiprof.text.names import printable
from cuptiprof.text.units import UNITS, ns_per

FORMATS = (".svg", ".png")
MAX_NAME = 80
SHORT_NAME = 30  # characters: three stand beside each other
# Names are text: no mathematics between dollar signs; in SVG they stay text.
SETTINGS = {"text.parse_math": False, "svg.fonttype": "none", "svg.hashsalt": "cuptiprof"}
LOGARITHMIC_SPAN = 20.0  # values that span more than this are shown on a logarithmic axis
MAX_FULL_DECADES = 4
ROOF = {"color": "0.35", "linestyle": "--", "linewidth": 1.0, "zorder": 1}
MARKERS, DASHES = "osD^v<>P", ("-", "--", "-.", ":")
_PREFIXES = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""))
_MULTIPLES = ((1 << 30, "Gi"), (10**9, "G"), (1 << 20, "Mi"), (10**6, "M"))


def load_matplotlib() -> Any:
    """Raises ResultError where it is not installed."""
    try:
        import matplotlib
    except ImportError:
        raise ResultError("plots need matplotlib", hint="pip install 'cuptiprof[plot]'") from None
    return matplotlib


def check_format(path: str | os.PathLike[str]) -> Path:
    """`path`, if its name says a kind of picture that can be written.

    Raises:
        ResultError: another one.
    """
    if (target := Path(path)).suffix not in FORMATS:
        raise ResultError(f"{target.name}: no such kind of picture", hint=f"one of: {', '.join(FORMATS)}")
    return target


def save_picture(path: str | os.PathLike[str], draw: Callable[[], Any]) -> None:
    """Write the figure that `draw` makes, as SVG or PNG by the name of the file. Equal figures give equal files.

    Raises:
        ResultError: another kind of file, it cannot be written, or matplotlib is not installed.
    """
    target = check_format(path)
    matplotlib = load_matplotlib()
    metadata = {"Date": None} if target.suffix == ".svg" else {"Software": None}
    with matplotlib.rc_context(SETTINGS), replacing_file(target, overwrite=True) as temporary:
        try:
            draw().savefig(temporary, format=target.suffix[1:], metadata=metadata, dpi=150, bbox_inches="tight")
        except (ValueError, OverflowError) as e:
            raise ResultError(f"cannot draw {target.name}: {e}") from None


def svg_text(draw: Callable[[], Any]) -> str:
    """The figure that `draw` makes as the text of an SVG image.

    Raises:
        ResultError: matplotlib is not installed.
    """
    matplotlib = load_matplotlib()
    out = io.StringIO()
    with matplotlib.rc_context(SETTINGS):
        draw().savefig(out, format="svg", metadata={"Date": None}, bbox_inches="tight")
    return out.getvalue()


def new_figure(width: float = 8, height: float = 5) -> Any:
    """A figure without a window, whatever the user's settings; sizes in inches."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def chip_title(environment: Mapping[str, Any]) -> str:
    """The chip, and that it is none, as a picture says it."""
    chip = str(environment.get("chip") or environment.get("cpu") or "")
    return shown(f"{chip} (SIMULATED: not measured on a GPU)" if environment.get("simulated") else chip)


def shown(text: str) -> str:
    """A name that matplotlib draws as it is, cut to 80 characters."""
    plain = printable(text)
    plain = plain if len(plain) <= MAX_NAME else f"{plain[: MAX_NAME - 1]}\u2026"
    return f" {plain}" if plain.startswith("_") else plain  # matplotlib hides labels that begin with an underscore


def time_unit(largest_ns: float) -> tuple[str, float]:
    """The unit in which the largest time is below 1000, and its ns."""
    unit = next(u for u in reversed(UNITS[1:]) if largest_ns < 1000 * ns_per(u) or u == "s")
    return unit, ns_per(unit)


def rate_unit(largest: float, what: str) -> tuple[str, float]:
    """ "GB/s" or "TFLOP/s" (`what`: "B/s", "FLOP/s"), in which the largest rate is below 1000, and what one is."""
    scale, prefix = next(((s, p) for s, p in _PREFIXES if largest >= s), _PREFIXES[-1])
    return prefix + what, scale


def line_style(place: int) -> dict[str, Any]:
    """Of the line or point at a place in the legend: hollow and dashed, so that one that lies behind another is seen through it."""
    return {
        "color": f"C{place % 10}",
        "linestyle": DASHES[place % len(DASHES)],
        "marker": MARKERS[place % len(MARKERS)],
        "markersize": 6 + place % 3 * 2,
        "fillstyle": "none",
    }


def add_legend(figure: Any, names: Collection[str]) -> None:
    """Below the axes, which keep their width: no line, point or roof is behind it."""
    across = min(len(names), 3 if max(map(len, names)) < SHORT_NAME else 2)
    width, height = figure.get_size_inches()
    figure.set_size_inches(width, height + 0.2 * math.ceil(len(names) / across))
    figure.legend(fontsize="small", loc="outside lower center", ncols=across)


def number_text(value: float) -> str:
    """A number as people write it: 4096, 16Mi, 0.25."""
    if value == int(value) and abs(value) >= 1e6:
        for size, letters in _MULTIPLES:
            if value % size == 0:
                return f"{int(value) // size}{letters}"
    return f"{value:g}" if abs(value) < 1e6 else f"{value:.3g}"


def scale_y(axes: Any, values: Sequence[float]) -> None:
    """The y axis from 0, or a logarithmic one where values span more than a factor of 20."""
    low, high = min(values), max(values)
    if low > 0 and high > LOGARITHMIC_SPAN * low:
        axes.set_yscale("log")
        number_ticks(axes.yaxis, low, high)
    else:
        axes.set_ylim(bottom=0)


def number_ticks(axis: Any, low: float, high: float) -> None:
    """Numbers of a logarithmic axis written out, at 1, 2 and 5 of each decade where there are few of them."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    few = high < low * 10**MAX_FULL_DECADES
    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if few else (1.0,)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: number_text(value)))
    axis.set_minor_formatter(NullFormatter())


def bound(value: float, median: float) -> float:
    """An end of an interval; the median where there is none."""
    return value if math.isfinite(value) else median
