"""Plots of a sweep."""

from __future__ import annotations

import struct
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest
from bench_rows import ENVIRONMENT, failed, row

from cuptiprof.bench.plots.canvas import load_matplotlib
from cuptiprof.bench.plots.over_parameter import is_geometric, lines_over
from cuptiprof.bench.results.row import Row
from cuptiprof.bench.results.store import Results
from cuptiprof.errors import BenchError, ResultError


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
    with pytest.raises(BenchError, match=r"no such kind of picture"):
        draw(tmp_path / "p.pdf", sweep(1, 2))
    with pytest.raises(BenchError, match=r"50 lines are too many"):
        draw(tmp_path / "p.svg", [r for t in range(50) for r in sweep(1, t=t)])
    with pytest.raises(ResultError, match=r"No such file"):
        draw(tmp_path / "none" / "p.svg", sweep(1, 2))
    assert not list(tmp_path.iterdir())


def test_matplotlib_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(BenchError, match=r"pip install 'cuptiprof\[plot\]'"):
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
