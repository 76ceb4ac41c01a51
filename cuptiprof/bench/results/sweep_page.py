"""A sweep as one HTML file: tables, pictures, environment. Nothing is loaded from elsewhere, and nothing in it runs.

Every text is escaped by the template engine; pictures are images of their own (SVG as a data URL), in which a browser runs no script. The
content security policy forbids all that is not needed.
"""

from __future__ import annotations

import base64
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from cuptiprof.bench.plots.histogram import MAX_PANELS, plot_histograms
from cuptiprof.bench.plots.over_parameter import is_number, plot_over
from cuptiprof.bench.plots.roofline_plot import plot_roofline
from cuptiprof.bench.results.row import Row
from cuptiprof.errors import BenchError, ResultError
from cuptiprof.io.files import replacing_file
from cuptiprof.page.policy import content_security_policy
from cuptiprof.page.template import render_template
from cuptiprof.pictures.canvas import load_matplotlib
from cuptiprof.report.model import Column, Report
from cuptiprof.report.render.cells import format_column, human_columns, is_left_aligned, missing_notes
from cuptiprof.text.names import printable
from cuptiprof.text.units import check_time_unit
from cuptiprof.version import __version__

TEMPLATE = Path(__file__).with_name("sweep_page.html.j2")
MAX_VALUE = 300  # characters of a value of the environment
MAX_PICTURES = 40
STYLE = """
body { font: 15px/1.45 system-ui, sans-serif; margin: 1.5rem auto; max-width: 75rem; padding: 0 1rem; color: #222; background: #fff }
h1 { font-size: 1.5rem } h2 { font-size: 1.15rem; margin-top: 2rem }
table { border-collapse: collapse; font-variant-numeric: tabular-nums }
th, td { padding: .15rem .6rem; text-align: right; white-space: pre-wrap; border-bottom: 1px solid #ddd; vertical-align: top }
th.left, td.left { text-align: left }
thead th { border-bottom: 2px solid #999 }
.wide { overflow-x: auto }
.warning { color: #8a4500; font-weight: bold }
figure { margin: 1.5rem 0 } img { max-width: 100%; height: auto } figcaption, footer, summary { color: #555 }
"""

Picture = tuple[str, Callable[[Path], None]]


def write_page(
    path: Path,
    reports: Sequence[Report],
    rows: Sequence[Row],
    environment: Mapping[str, Any],
    title: str = "Benchmarks",
) -> None:
    """Write the page of a sweep; without matplotlib it has no pictures, and says so.

    Args:
        reports: its tables; the environment is that of the run.

    Raises:
        ResultError: the file cannot be written.
    """
    text = make_page(reports, rows, environment, title)
    with replacing_file(path, overwrite=True) as temporary:
        temporary.write_text(text, encoding="utf-8", errors="backslashreplace")


def make_page(reports: Sequence[Report], rows: Sequence[Row], environment: Mapping[str, Any], title: str) -> str:
    """The page as text; see :func:`write_page`."""
    drawn, undrawn = _draw(list(_pictures(rows, environment)))
    return render_template(
        TEMPLATE,
        title=title,
        style=STYLE,
        policy=content_security_policy([], [STYLE]),
        tables=[_table(report) for report in reports],
        pictures=drawn,
        undrawn=undrawn,
        environment=[(printable(str(n)), printable(str(v)[:MAX_VALUE])) for n, v in environment.items()],
        version=__version__,
    )


def best_axis(rows: Sequence[Row]) -> str:
    """The parameter that has the most values, numbers before names; empty: none has two."""
    values: dict[str, dict[str, bool]] = {}
    for row in rows:
        for name, value in row.params.items():
            if name != row.compare:
                values.setdefault(name, {})[repr(value)] = is_number(value)
    several = {name: (all(v.values()), len(v)) for name, v in values.items() if len(v) > 1}
    return max(several, key=lambda name: several[name]) if several else ""


def _table(report: Report) -> dict[str, Any]:
    view, units = report.content, check_time_unit(report.units)

    def part(columns: Sequence[Column], fold: str) -> dict[str, Any]:
        cells = [format_column(view, c, units) for c in columns]
        titles = [{"title": printable(c.title), "left": is_left_aligned(c)} for c in columns]
        return {"columns": titles, "rows": list(zip(*cells, strict=True)), "fold": fold}

    human = human_columns(view)
    parts = [part(human, "")] if len(view) else []
    if len(view) and len(human) < len(view.columns):
        parts.append(part([c for c in view.columns if c.machine], "All columns"))
    lines = [printable(line) for line in (*missing_notes(view), *view.footers)]
    return {"title": report.title, "header": list(map(printable, report.header)), "parts": parts, "lines": lines}


def _pictures(rows: Sequence[Row], environment: Mapping[str, Any]) -> Iterator[Picture]:
    """(caption, what draws it) of all that there is something to see in."""
    measured = [row for row in rows if row.measurement is not None]
    roofs = [m.roofline for m in (row.measurement for row in measured) if m is not None and m.roofline is not None]
    for name in dict.fromkeys(row.benchmark for row in measured):
        of = [row for row in measured if row.benchmark == name]
        own = [
            row.measurement.roofline
            for row in of
            if row.measurement is not None and row.measurement.roofline is not None
        ]
        if axis := best_axis(of):
            yield f"{name}: time over {axis}", partial(_over, of, environment, axis, "time")
            if any(r.flop_rate > 0 for r in own):
                yield f"{name}: operations a second over {axis}", partial(_over, of, environment, axis, "flops")
            if any(r.byte_rate > 0 for r in own):
                yield f"{name}: bytes a second over {axis}", partial(_over, of, environment, axis, "bytes")
    if any(r.intensity > 0 and r.flop_rate > 0 for r in roofs):
        yield "Roofline", partial(plot_roofline, measured, environment)
    for first in range(0, len(measured), MAX_PANELS):
        yield "Samples of each point", partial(plot_histograms, measured[first : first + MAX_PANELS], environment)


def _over(rows: Sequence[Row], environment: Mapping[str, Any], x: str, y: str, path: Path) -> None:
    plot_over(rows, environment, path, x, y)


def _draw(pictures: Sequence[Picture]) -> tuple[list[dict[str, str]], list[str]]:
    """The pictures, and why some are not there."""
    try:
        load_matplotlib()
    except ResultError as e:
        return [], [f"No pictures: {e.message} ({e.hint})"] if pictures else []
    drawn, undrawn = [], []
    with tempfile.TemporaryDirectory() as folder:
        for caption, draw in pictures[:MAX_PICTURES]:
            path = Path(folder, "picture.svg")
            try:
                draw(path)
            except BenchError as e:
                undrawn.append(printable(f"No picture of {caption}: {e.message}"))
                continue
            drawn.append({"caption": printable(caption), "data": base64.b64encode(path.read_bytes()).decode()})
    if len(pictures) > MAX_PICTURES:
        undrawn.append(f"{len(pictures) - MAX_PICTURES} pictures were left out")
    return drawn, undrawn
