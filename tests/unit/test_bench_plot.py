"""Plots of a sweep."""

from __future__ import annotations

import math
import struct
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bench_rows import ENVIRONMENT, failed, row

from cuptiprof.bench import Roofline
from cuptiprof.bench.plots.histogram import bin_edges
from cuptiprof.bench.plots.over_parameter import is_geometric, lines_over
from cuptiprof.bench.results.row import Row
from cuptiprof.bench.results.store import Results
from cuptiprof.errors import BenchError, ResultError
from cuptiprof.pictures.canvas import load_matplotlib, number_text


def sweep(*values: Any, **params: Any) -> list[Row]:
    return [row(1000.0 * (i + 1), noise=0.05, params={"n": v, **params}) for i, v in enumerate(values)]


def draw(path: Path, rows: list[Row], x: str = "n") -> Path:
    Results(tuple(rows), ENVIRONMENT).plot(path, x)
    return path


def texts(path: Path) -> list[str]:
    return ["".join(t.itertext()) for t in ET.parse(path).iter("{http://www.w3.org/2000/svg}text")]


def test_a_line_for_each_combination_of_the_other_parameters() -> None:
    lines = lines_over([*sweep(2, 1, t="a"), *sweep(1, t="b"), failed(params={"n": 9, "t": "a"})], "n")
    assert {name: [p.x for p in line] for name, line in lines.items()} == {"gemm t=a": [1, 2], "gemm t=b": [1]}


def test_svg_has_names_axes_and_bands(tmp_path: Path) -> None:
    path = draw(tmp_path / "p.svg", [*sweep(256, 512, 1024, t="a"), *sweep(256, 512, 1024, t="b")])
    shown = texts(path)
    assert {
        "n",
        "time (us)",
        "gemm t=a",
        "gemm t=b",
        "256",
        "512",
        "1024",
        "H100 (SIMULATED: not measured on a GPU)",
    } <= set(shown)
    assert path.read_text().count("FillBetweenPolyCollection") == 2
    again = draw(tmp_path / "q.svg", [*sweep(256, 512, 1024, t="a"), *sweep(256, 512, 1024, t="b")])
    assert again.read_bytes() == path.read_bytes()


def test_png(tmp_path: Path) -> None:
    data = draw(tmp_path / "p.png", sweep(1, 2, 3)).read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    width, height = struct.unpack(">II", data[16:24])
    assert width > 800 and height > 500


@pytest.mark.parametrize(
    "values,expected",
    [([256, 512, 1024], True), ([1, 10, 100, 1000], True), ([0.1, 0.2, 0.4], True), ([1, 2, 3], False), ([1, 2], False),
     ([0, 1, 2], False), ([-4, -2, -1], False), ([3, 3, 3], False)],
)  # fmt: skip
def test_geometric_axes(values: list[float], expected: bool) -> None:
    assert is_geometric(values) is expected


def test_names_and_numbers_as_places(tmp_path: Path) -> None:
    shown = texts(draw(tmp_path / "p.svg", sweep("float16", 8, None, True)))
    assert {"float16", "8", "None", "True"} <= set(shown)


def test_hostile_names(tmp_path: Path) -> None:
    names = [
        r"$\frac{1}{$",
        "_hidden",
        "</text><script>alert(1)</script>",
        "\x1b[31m\x00",
        "x" * 3000,
        "&amp;",
        "\ud800",
    ]
    rows = [row(benchmark=b, params={"n": i}) for b in names for i in range(2)]
    path = draw(tmp_path / "p.svg", rows)
    shown = "\n".join(texts(path))
    assert r"$\frac{1}{$" in shown and "_hidden" in shown and r"\x1b[31m\x00" in shown and r"\ud800" in shown
    assert "<script>" not in path.read_text()
    assert "x" * 79 in shown and "x" * 80 not in shown


def test_one_point_zero_times_and_huge_values(tmp_path: Path) -> None:
    draw(tmp_path / "a.svg", sweep(5))
    draw(tmp_path / "b.svg", sweep(1, 10**200, 10**290))
    draw(tmp_path / "c.svg", [row(ns, noise=0.0, params={"n": n}) for n, ns in ((1, 1e-3), (2, 1e15))])
    assert all((tmp_path / f"{n}.svg").stat().st_size for n in "abc")


def test_what_cannot_be_drawn(tmp_path: Path) -> None:
    with pytest.raises(BenchError, match=r"no parameter 'm'"):
        draw(tmp_path / "p.svg", sweep(1, 2), "m")
    with pytest.raises(BenchError, match=r"has been measured"):
        draw(tmp_path / "p.svg", [failed(params={"n": 1})])
    with pytest.raises(ResultError, match=r"no such kind of picture"):
        draw(tmp_path / "p.pdf", sweep(1, 2))
    with pytest.raises(BenchError, match=r"50 lines are too many"):
        draw(tmp_path / "p.svg", [r for t in range(50) for r in sweep(1, t=t)])
    with pytest.raises(ResultError, match=r"No such file"):
        draw(tmp_path / "none" / "p.svg", sweep(1, 2))
    assert not list(tmp_path.iterdir())


def test_matplotlib_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ResultError, match=r"pip install 'cuptiprof\[plot\]'"):
        load_matplotlib()


def test_matplotlib_is_not_imported_before_it_draws() -> None:
    code = "import sys, cuptiprof.bench, cuptiprof.cli; print('matplotlib' in sys.modules, 'torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False False\n"


def test_numbers_of_logarithmic_axes_are_written_out(tmp_path: Path) -> None:
    for name, span in (("few", 40.0), ("many", 1e7)):
        rows = [row(ns, noise=0.01, params={"n": n}) for n, ns in ((1, 1500.0), (2, 9000.0), (3, 1500.0 * span))]
        shown = texts(draw(tmp_path / f"{name}.svg", rows))
        assert not [t for t in shown if "$" in t or "mathdefault" in t]
        numbers = [float(t) for t in shown if t.replace(".", "").replace("e-", "").replace("e+", "").isdigit()]
        assert len(numbers) >= 6, "three values of n, and three numbers of the axis of times at least"


def roof(intensity: float, *, ns: float = 1000.0, peak: float = 1e15, missing: bool = False) -> Roofline:
    """Of a call of `ns` that moves 1 MB."""
    flops = math.nan if missing else intensity * 1e6
    return Roofline(flops, 1e6, flops / ns * 1e9, 1e6 / ns * 1e9, peak, 3e12, flops / 1e6, "memory", 0.3, "given")


def rated(*intensities: float, **more: Any) -> Results:
    rows = [row(params={"n": 2**i}, noise=0.02, roofline=roof(x, **more)) for i, x in enumerate(intensities)]
    return Results(tuple(rows), ENVIRONMENT)


def test_rates_have_their_unit_and_their_roof(tmp_path: Path) -> None:
    rated(10.0, 100.0, 300.0).plot(tmp_path / "f.svg", "n", "flops")
    assert {"operations (TFLOP/s)", "peak 1000 TFLOP/s"} <= set(texts(tmp_path / "f.svg"))
    rated(10.0, 100.0).plot(tmp_path / "b.svg", "n", "bytes")
    assert {"DRAM bytes (TB/s)", "peak 3 TB/s"} <= set(texts(tmp_path / "b.svg"))
    with pytest.raises(BenchError, match=r"how many operations: give flops="):
        rated(10.0, missing=True).plot(tmp_path / "n.svg", "n", "flops")
    with pytest.raises(BenchError, match=r"did you mean bytes"):
        rated(10.0).plot(tmp_path / "n.svg", "n", "byts")


def test_a_rate_has_the_interval_of_its_time_turned_round() -> None:
    (line,) = lines_over(rated(10.0).rows, "n", "bytes").values()
    (m,) = (r.measurement for r in rated(10.0).rows)
    assert m is not None
    assert line[0].value == pytest.approx(1e15 / m.median) and line[0].low == pytest.approx(1e15 / m.interval.high)
    assert line[0].low < line[0].value < line[0].high


def test_roofline_has_roofs_points_and_what_is_missing(tmp_path: Path) -> None:
    results = rated(10.0, 1000.0)
    results = Results((*results.rows, row(params={"n": 9})), ENVIRONMENT)
    results.plot_roofline(tmp_path / "r.svg")
    shown = texts(tmp_path / "r.svg")
    assert {"gemm n=1", "gemm n=2", "DRAM 3 TB/s", "compute 1000 TFLOP/s"} <= set(shown)
    assert "arithmetic intensity (operations per byte of DRAM)" in shown
    assert any("1 points have no operations or bytes" in t for t in shown)
    assert {"100", "1000"} <= set(shown) and not [t for t in shown if "$" in t]
    with pytest.raises(BenchError, match=r"both operations and bytes"):
        Results((row(params={"n": 9}),), ENVIRONMENT).plot_roofline(tmp_path / "none.svg")


@pytest.mark.parametrize("peaks", [(math.nan, math.nan), (1e15, math.nan), (math.nan, 3e12)])
def test_roofline_of_a_chip_that_is_not_known(tmp_path: Path, peaks: tuple[float, float]) -> None:
    r = Roofline(1e9, 1e6, 1e15, 1e12, *peaks, 1000.0, "", math.nan, "given")
    Results((row(params={"n": 1}, roofline=r),), ENVIRONMENT).plot_roofline(tmp_path / "r.svg")
    assert "gemm n=1" in texts(tmp_path / "r.svg")


def test_histograms(tmp_path: Path) -> None:
    Results((*sweep(1, 2, 3), failed(params={"n": 4})), ENVIRONMENT).plot_histograms(tmp_path / "h.svg")
    shown = texts(tmp_path / "h.svg")
    assert {"gemm n=1", "gemm n=2", "gemm n=3", "samples"} <= set(shown) and "gemm n=4" not in shown
    with pytest.raises(BenchError, match=r"17 histograms are too many"):
        Results(tuple(sweep(*range(17))), ENVIRONMENT).plot_histograms(tmp_path / "x.svg")


def test_bins_show_the_bulk_and_never_a_comb() -> None:
    rng = np.random.default_rng(0)
    bulk = rng.normal(1000.0, 10.0, 1000)
    edges = bin_edges(np.append(bulk, 100_000.0), math.nan)
    assert edges[-1] < 1100 and len(edges) > 10
    ticks = np.round(bulk / 8) * 8  # a clock of 8 ns
    for tick in (8.0, math.nan):
        counts, _ = np.histogram(ticks, bin_edges(ticks, tick))
        inner = counts[len(counts) // 4 : -len(counts) // 4]
        assert len(counts) >= 5 and inner.min() > 0, "bins between ticks would be empty"
    two = np.concatenate([bulk[:300], bulk[300:] + 4000.0])
    counts, _ = np.histogram(two, bin_edges(two, math.nan))
    assert counts.sum() == 1000, "both modes are shown"
    constant = np.full(20, 5.0)
    counts, edges = np.histogram(constant, bin_edges(constant, 1.0))
    assert counts.tolist() == [20] and edges.tolist() == [4.5, 5.5]


def test_lines_on_one_another_are_both_seen(tmp_path: Path) -> None:
    draw(tmp_path / "p.svg", [*sweep(1, 2, 3, t="a"), *sweep(1, 2, 3, t="b")])
    assert "stroke-dasharray" in (tmp_path / "p.svg").read_text()


@pytest.mark.parametrize(
    "value,text",
    [(4096, "4096"), (1 << 24, "16Mi"), (3_000_000, "3M"), (0.25, "0.25"), (1 << 31, "2Gi"), (0, "0"),
     (1e12, "1000G"), (0.5, "0.5")],
)  # fmt: skip
def test_sizes_read_as_numbers(value: float, text: str) -> None:
    assert number_text(value) == text


def test_many_sizes_do_not_touch(tmp_path: Path) -> None:
    values = [2**i for i in range(6, 27)]
    shown = texts(draw(tmp_path / "p.svg", sweep(*values)))
    numbers = [t for t in shown if t.rstrip("Mi").isdigit() and _size(t) >= 64]
    assert {"64", "4Mi"} <= set(numbers) and len(numbers) < len(values)
    assert sum(len(t) + 1 for t in numbers) < 90, "as many digits as there is room for"


def _size(text: str) -> int:
    return int(text.rstrip("Mi")) << (20 if text.endswith("Mi") else 0)
