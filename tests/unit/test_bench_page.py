"""A sweep as one HTML file."""

from __future__ import annotations

import base64
import hashlib
import math
import sys
import xml.etree.ElementTree as ET
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from bench_rows import ENVIRONMENT, counters, failed, row

from cuptiprof.bench import Roofline
from cuptiprof.bench.results.baseline import compare_results
from cuptiprof.bench.results.comparison_table import comparison_report
from cuptiprof.bench.results.row import Row
from cuptiprof.bench.results.store import Results
from cuptiprof.bench.results.sweep_page import best_axis

HOSTILE = (
    "</td></table></style><script>alert(1)</script><img src=x onerror=alert(2)>'\"&amp;{{7*7}}{% raw %}\x1b[31m\ud800"
)
ALLOWED = {
    "html", "head", "meta", "title", "style", "body", "h1", "h2", "p", "div", "table", "thead", "tbody", "tr", "th", "td",
    "details", "summary", "figure", "img", "figcaption", "footer",
}  # fmt: skip


class Page(HTMLParser):
    def __init__(self, path: Path) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.text: list[str] = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in ("meta", "img"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)

    def pictures(self) -> dict[str, str]:
        """Caption -> SVG."""
        start = "data:image/svg+xml;base64,"
        images = [a for tag, a in self.tags if tag == "img"]
        assert all((a["src"] or "").startswith(start) for a in images)
        return {str(a["alt"]): base64.b64decode(str(a["src"])[len(start) :]).decode() for a in images}


def roof(**more: Any) -> Roofline:
    given = {"flops": 1e9, "bytes": 1e6, "flop_rate": 5e14, "byte_rate": 1e12, "peak_flop_rate": 1e15, "peak_byte_rate": 3e12,
             "intensity": 1000.0, "bound": "compute", "share": 0.5, "source": "given"}  # fmt: skip
    return Roofline(**{**given, **more})  # type: ignore[arg-type]


def saved(tmp_path: Path, *rows: Row, **environment: Any) -> Page:
    Results(rows, {**ENVIRONMENT, **environment}, ("a note of the file",)).save_html(tmp_path / "p.html")
    return Page(tmp_path / "p.html")


def test_a_page_has_tables_pictures_and_the_environment(tmp_path: Path) -> None:
    rows = [row(1000.0 * n, params={"n": n, "dtype": d}, roofline=roof()) for n in (1, 2, 4) for d in ("f16", "f32")]
    page = saved(tmp_path, *rows, failed("MemoryError: no room", params={"n": 8, "dtype": "f16"}))
    assert page.open == [] and {tag for tag, _ in page.tags} <= ALLOWED
    text = "\n".join(page.text)
    assert "SIMULATED device (chip H100): not measured on a GPU" in text and "MemoryError: no room" in text
    assert "a note of the file" in text and "c0ffee" in text and "P95" in text
    assert list(page.pictures()) == [
        "gemm: time over n", "gemm: operations a second over n", "gemm: bytes a second over n", "Roofline", "Samples of each point",
    ]  # fmt: skip
    for svg in page.pictures().values():
        ET.fromstring(svg)


def test_the_policy_allows_its_own_style_and_nothing_else(tmp_path: Path) -> None:
    page = saved(tmp_path, row(params={"n": 1}))
    (policy,) = (a["content"] for tag, a in page.tags if a.get("http-equiv") == "Content-Security-Policy")
    text = (tmp_path / "p.html").read_text()
    style = text.partition("<style>")[2].partition("</style>")[0]
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert (
        policy == f"default-src 'none'; img-src data:; base-uri 'none'; form-action 'none'; style-src 'sha256-{digest}'"
    )
    assert not any("style" in a or any(n.startswith("on") for n in a) for _, a in page.tags)
    assert not any(name in a for _, a in page.tags for name in ("href", "srcset", "action"))


def test_hostile_names_are_text(tmp_path: Path) -> None:
    bad = [
        row(
            benchmark=HOSTILE, params={HOSTILE: n, "n": HOSTILE}, counters=counters((HOSTILE, 1.0, HOSTILE)),
            notes=(HOSTILE,), roofline=roof(source=HOSTILE),
        )
        for n in (1, 2)
    ]  # fmt: skip
    old = Results(tuple(bad), ENVIRONMENT)
    new = Results((*bad, failed(HOSTILE, benchmark=HOSTILE)), {**ENVIRONMENT, "chip": HOSTILE, HOSTILE: HOSTILE})
    new.save_html(tmp_path / "p.html", against=comparison_report(compare_results(old, new), new.environment))
    page = Page(tmp_path / "p.html")
    assert page.open == [] and {tag for tag, _ in page.tags} <= ALLOWED
    assert "<script>alert(1)</script>" in "".join(page.text) and "{{7*7}}" in "".join(page.text)
    assert "\x1b" not in "".join(page.text)
    for caption, svg in page.pictures().items():
        assert "<script" not in svg and "\x1b" not in caption
        ET.fromstring(svg)


def test_what_cannot_be_drawn_is_said(tmp_path: Path) -> None:
    page = saved(tmp_path, *[row(params={"n": n, "m": m}) for n in range(3) for m in [f"m{i}" for i in range(41)]])
    assert set(page.pictures()) == {"Samples of each point"}
    assert "No picture of gemm: time over n: 41 lines are too many for one plot" in "".join(page.text)
    empty = saved(tmp_path)
    assert "no points" in "".join(empty.text) and not empty.pictures()
    nan = saved(
        tmp_path, row(params={"n": 1}, roofline=roof(flop_rate=math.nan, byte_rate=math.nan, intensity=math.nan))
    )
    assert list(nan.pictures()) == ["Samples of each point"]


@pytest.mark.parametrize(
    "params,expected",
    [([{"n": 1, "t": "a"}, {"n": 2, "t": "b"}], "n"), ([{"n": 1, "t": "a"}, {"n": 1, "t": "b"}], "t"), ([{"n": 1}], ""), ([{}], "")],
)  # fmt: skip
def test_the_axis_of_a_sweep(params: list[dict[str, Any]], expected: str) -> None:
    assert best_axis([Row("f", p) for p in params]) == expected


def test_without_matplotlib_there_are_no_pictures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    page = saved(tmp_path, row(params={"n": 1}))
    assert not page.pictures() and "No pictures: plots need matplotlib" in "".join(page.text)
