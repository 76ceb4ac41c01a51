"""Tables of the page: their numbers are those of the reports."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from axe_playwright_python.sync_playwright import Axe
from conftest import trace_path
from playwright.sync_api import Page, expect
from report_results import make_result, training_step

import cuptiprof
from cuptiprof.page import PageRun, write_page
from cuptiprof.page.compared_runs import differences
from cuptiprof.page.packed import page_text
from cuptiprof.report import VIEWS, make_report
from cuptiprof.report.model import Column, Report, View
from cuptiprof.report.render.cells import format_column
from cuptiprof.sim.sim_device import SimDevice

PLACES = (("kernel", "kernels"), ("operator", "operators"), ("module", "modules"), ("region", "regions"))

UNPACKED = """async (id) => {
  const { facts, columns } = await cuptiprof.unpack(id);
  const out = {};
  for (const [name, column] of Object.entries(columns)) {
    out[name] = Array.from({ length: column.length }, (_, i) => {
      const value = column instanceof cuptiprof.Texts ? column.at(i) : column[i];
      return Number.isNaN(value) ? null : value;
    });
  }
  return { facts, columns: out };
}"""


def in_page(value: Any) -> Any:
    """What the page has for a raw value of a report."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    if isinstance(value, tuple | list):
        return f"({' '.join(map(str, value))})"
    return page_text(value) if isinstance(value, str) else value


def assert_equal(unpacked: dict[str, Any], table: int, report: Report) -> None:
    rows = report.rows
    assert unpacked["facts"]["tables"][table]["rows"] == len(rows)
    for column in report.content.columns:
        if column.machine:
            there = unpacked["columns"][f"{table}:{column.key}"]
            texts = column.kind in ("label", "metric_unit")
            ours = [in_page(row[column.key]) for row in rows]
            assert there == [str(v) if texts and v is not None else v for v in ours], column.key


def sections(page: Page) -> list[str]:
    return [link.get_attribute("href")[3:] for link in page.locator("nav a").all()]  # type: ignore[index]


@pytest.mark.parametrize("source", ["step", "train-v100", "sampled-nccl"])
def test_every_number_is_that_of_its_report(page_of: Callable[..., Page], source: str) -> None:
    result = training_step() if source == "step" else cuptiprof.open(trace_path(source))
    page = page_of(result)
    compared = 0
    for key in sections(page):
        unpacked = page.evaluate(UNPACKED, f"data-{key}")
        for i, facts in enumerate(unpacked["facts"]["tables"]):
            if facts["view"] in VIEWS:  # those of charts are compared where these are
                assert_equal(unpacked, i, make_report(result, facts["view"]))
                compared += facts["rows"]
    assert compared > 50


def test_every_control(page_of: Callable[..., Page]) -> None:
    """Each button, choice and box of the page, one after the other: nothing complains (``open_page`` looks)."""
    page = page_of(training_step())
    for select in page.locator("select").all():
        for option in select.locator("option").all():
            select.select_option(option.get_attribute("value"))
    for box in page.locator("input[type=checkbox]").all():
        box.check()
        box.uncheck()
    for search in page.locator("input[type=search]").all():
        search.fill("a")
        search.fill("")
    for section in sections(page):
        buttons = f"#s-{section} button:visible:enabled"
        for i in range(page.locator(buttons).count()):
            button = page.locator(buttons).nth(i)
            if button.count() and button.inner_text() != "Save image":
                button.click(force=True)
    page.locator("#theme").click()
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"


def test_sorting_searching_and_grouping(page_of: Callable[..., Page]) -> None:
    result = cuptiprof.open(trace_path("train-v100"))
    page = page_of(result)
    kernels = page.locator("#s-kernels")
    rows = make_report(result, "kernels").rows

    def shown(column: int) -> list[str]:
        return kernels.locator(f"tbody tr:not(.above) td:nth-child({column})").all_inner_texts()

    titles = kernels.locator("thead th").all_inner_texts()
    name = next(i for i, title in enumerate(titles, 1) if title == "Name")
    assert len(shown(1)) == 25 < len(rows)
    calls = next(i for i, title in enumerate(titles, 1) if title == "Calls")
    most_first = sorted((row["calls"] for row in rows), reverse=True)
    assert len(set(most_first)) > 10
    for expected in (most_first, most_first[::-1]):
        kernels.get_by_role("button", name="Calls").click()
        assert list(map(int, shown(calls))) == expected[:25]
    kernels.get_by_role("searchbox").fill("elementwise")
    assert {"elementwise" in text.lower() for text in shown(name)} == {True}
    assert (
        kernels.get_by_role("status")
        .inner_text()
        .startswith(f"{min(25, n := sum('elementwise' in str(row).lower() for row in rows))} of {n} rows that match")
    )


def test_long_names_are_two_lines_until_asked_for(page_of: Callable[..., Page]) -> None:
    names = (f"gemm<{', '.join(['float'] * 400)}>", "short")
    page = page_of(make_result({"kernels": [{"name": name, "start": 10, "end": 20} for name in names]}))
    rows = page.locator("#s-kernels tbody tr")
    long, short = rows.filter(has=page.locator(".more")), rows.filter(has_text="short")
    name, line = long.locator(".long"), short.bounding_box()["height"]  # type: ignore[index]
    assert short.locator(".more").count() == 0
    before = name.bounding_box()["height"]  # type: ignore[index]
    assert line < before < 3 * line
    long.get_by_role("button", name="whole name").click()
    assert name.inner_text().count("float") == 400 and long.bounding_box()["height"] > 5 * line  # type: ignore[index]
    long.get_by_role("button", name="less").click()
    assert name.bounding_box()["height"] == before  # type: ignore[index]


def test_advice_leads_to_its_row(page_of: Callable[..., Page]) -> None:
    page = page_of(cuptiprof.open(trace_path("train-v100")))
    link = page.locator("#s-advise button.link").first
    link.click()
    row = make_report(cuptiprof.open(trace_path("train-v100")), "advise").rows[0]
    key, name = next((key, row[place]) for place, key in PLACES if row[place])
    expect(page.locator(f"#s-{key} input[type=search]").first).to_have_value(page_text(name))


def test_two_runs(page_of: Callable[..., Page], open_page: Callable[..., Page], tmp_path: Path) -> None:
    base, new = training_step(), cuptiprof.open(trace_path("train-v100"))
    path = tmp_path / "two.html"
    difference = base.diff(new)
    write_page([PageRun("a", base), PageRun("b", new)], path, [difference])
    page = open_page(path)
    page.wait_for_selector("html[data-state=complete]", state="attached")
    assert sections(page)[0] == "diff" and {"kernels", "1-kernels"} <= set(sections(page))
    assert_equal(page.evaluate(UNPACKED, "data-diff"), 0, difference)
    assert_equal(page.evaluate(UNPACKED, "data-1-kernels"), 0, make_report(new, "kernels"))


HOSTILE = (
    "</script><script>alert(1)</script>", "<img src=x onerror=alert(1)>", "\x1b[31mred\x1b[0m", "\u202eevil\u202c", "=cmd|'/c calc'!A1",
    "{{ 7 * 7 }}", "a" * 65_536, "\udcff half", "<!--", "javascript:alert(1)", "",
)  # fmt: skip


def test_hostile_names(page_of: Callable[..., Page]) -> None:
    """Nothing runs (no dialog, no message), and each is there as text."""
    kernels = [{"name": name, "region": name, "start": 100 * i, "end": 100 * i + 50} for i, name in enumerate(HOSTILE)]
    regions = [
        {"name": name, "path": name, "start": 0, "end": 2000, "instance": i + 1} for i, name in enumerate(HOSTILE)
    ]
    result = make_result(
        {"kernels": kernels, "regions": regions}, {"host": HOSTILE[0], "note": HOSTILE[1], "argv": list(HOSTILE)}
    )
    page = page_of(result)
    kernels_text = page.locator("#s-kernels table").inner_text()
    assert "</script><script>alert(1)</script>" in kernels_text and "<img src=x onerror=alert(1)>" in kernels_text
    assert "\x1b" not in kernels_text and "\u202e" not in page.locator("body").inner_text()
    assert (
        page.evaluate("document.images.length") == 0
        and page.evaluate("document.querySelectorAll('iframe, object, embed').length") == 0
    )


def test_a_hundred_thousand_names(page_of: Callable[..., Page]) -> None:
    kernels = [{"name": f"kernel_{i}", "start": 10 * i, "end": 10 * i + 5} for i in range(100_000)]
    page = page_of(make_result({"kernels": kernels}))
    page.locator("#s-kernels input[type=search]").fill("kernel_99999")
    assert page.locator("#s-kernels tbody tr:not(.above)").count() == 1


def test_runs_with_nothing_and_with_losses(page_of: Callable[..., Page]) -> None:
    page = page_of(make_result({}))
    assert "Nothing was lost." in page.locator(".facts").inner_text()
    lost = make_result({"kernels": [{"name": "a", "start": 0, "end": 5}]}, losses={"pool_exhausted": 7})
    page = page_of(lost)
    assert "pool_exhausted: 7" in page.locator(".facts").inner_text()


def test_a_simulated_run_says_so(page_of: Callable[..., Page]) -> None:
    with cuptiprof.profile(device="sim") as prof:
        SimDevice().launch("a")
    assert "SIMULATED" in page_of(prof.result()).locator(".facts .warning").first.inner_text()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious(page_of: Callable[..., Page], scheme: str) -> None:
    page = page_of(cuptiprof.open(trace_path("train-v100")))
    if scheme == "dark":
        page.locator("#theme").click()
    found = Axe().run(page).response["violations"]
    serious = {
        one["id"]: [node["html"][:200] for node in one["nodes"][:3]]
        for one in found
        if one["impact"] in ("serious", "critical")
    }
    assert serious == {}


def test_all_that_differs(page_of: Callable[..., Page], open_page: Callable[..., Page], tmp_path: Path) -> None:
    base, new = training_step(), cuptiprof.open(trace_path("train-v100"))
    reports = differences(base, new, ("a", "b"))
    assert [report.title.rsplit(" ", 1)[1] for report in reports][:2] == ["kernel", "region"]
    path = tmp_path / "all.html"
    write_page([PageRun("a", base), PageRun("b", new)], path, reports)
    page = open_page(path)
    page.wait_for_selector("html[data-state=complete]", state="attached")
    unpacked = page.evaluate(UNPACKED, "data-diff")
    for i, report in enumerate(reports):
        assert_equal(unpacked, i, report)


@pytest.mark.parametrize("kind", ["duration", "bytes", "byte_rate", "flop", "flop_rate", "percent"])
def test_numbers_are_written_as_in_the_reports(page_of: Callable[..., Page], kind: Any) -> None:
    rng = np.random.default_rng(7)
    values = [
        0.0,
        0.5,
        1.5,
        2.5,
        999.5,
        1000.0,
        123125.0,
        999_995.0,
        999_999.0,
        *(10 ** rng.uniform(-2, 17, 400)).tolist(),
    ]
    values += rng.integers(0, 10**7, 400).astype(float).tolist()
    values += (rng.integers(0, 10**6, 400) / 8).tolist()
    column = Column("x", "X", kind)
    ours = format_column(View((column,), {"x": values}), column, "auto")
    page = page_of(training_step())
    assert page.evaluate("([kind, values]) => values.map((v) => cuptiprof.format(kind, v))", [kind, values]) == ours
