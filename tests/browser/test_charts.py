"""Charts: what is drawn are the numbers of the tables and of the analyses; every control does something; readable in both colours."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from charted_run import charted_run
from metric_results import counted, launch, values
from playwright.sync_api import Locator, Page
from report_results import HOSTILE

from cuptiprof.analysis.allocators.allocator_memory import memory_timeline
from cuptiprof.analysis.training_steps.step_breakdown import step_breakdown
from cuptiprof.data.result import Result

DRAWN = """(key) => [...document.querySelectorAll(`#s-${key} .body > div`)].find((e) => e.charts).charts.map(({ chart, plot }) => ({
  title: chart.title, keys: chart.series.map((s) => s.key), table: chart.table, kind: chart.kind,
  data: plot.data.map((column) => Array.from(column)), scale: [plot.scales.x.min, plot.scales.x.max], y: [plot.scales.y.min, plot.scales.y.max],
  shown: plot.series.map((s) => s.show),
}))"""
SECTIONS = ("step-times", "kernel-times", "occupancy", "over-time", "memory-curve")
INK = """(canvas) => {
  const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  const colours = new Set();
  for (let i = 0; i < data.length; i += 4) if (data[i + 3] > 200) colours.add(`${data[i]},${data[i + 1]},${data[i + 2]}`);
  return [...colours];
}"""


def chart(page: Page, key: str, place: int = 0) -> Locator:
    return page.locator(f"#s-{key} figure").nth(place)


def test_steps_are_those_of_the_analysis(page_of: Callable[..., Page]) -> None:
    run = charted_run()
    (drawn,) = page_of(run).evaluate(DRAWN, "step-times")
    found = step_breakdown(run)
    _, total, kernels, outliers = drawn["data"]
    assert total == found.total.tolist() and kernels == found.roles["kernel"].tolist()
    assert [i for i, ns in enumerate(outliers) if ns is not None] == [5] and outliers[5] == total[5]


def test_memory_is_that_of_the_analysis(page_of: Callable[..., Page]) -> None:
    run = charted_run()
    allocator, _ = page_of(run).evaluate(DRAWN, "memory-curve")
    timeline = memory_timeline(run, 0)
    assert allocator["data"][1:] == [timeline.reserved.tolist(), timeline.allocated.tolist()]
    assert allocator["y"][1] >= max(timeline.reserved)


@pytest.mark.parametrize("key", SECTIONS)
def test_what_is_drawn_is_in_the_table(page_of: Callable[..., Page], key: str) -> None:
    page = page_of(charted_run())
    unpacked = page.evaluate(f'async () => Object.fromEntries(Object.entries((await cuptiprof.unpack("data-{key}")).columns).map(([n, c]) => [n, c.codes ? null : Array.from(c, (v) => Number.isNaN(v) ? null : v)]))')  # fmt: skip
    for drawn in page.evaluate(DRAWN, key):
        for name, column in zip(drawn["keys"], drawn["data"][1:], strict=True):
            assert column == unpacked[f"{drawn['table']}:{name}"]


@pytest.mark.parametrize("key", SECTIONS)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_series_has_its_colour(page_of: Callable[..., Page], key: str, scheme: str) -> None:
    page = page_of(charted_run())
    page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
    page.wait_for_timeout(100)
    for place, drawn in enumerate(page.evaluate(DRAWN, key)):
        inks = chart(page, key, place).locator("canvas").evaluate(INK)
        swatches = (
            chart(page, key, place)
            .locator(".swatch")
            .evaluate_all("(all) => all.map((s) => getComputedStyle(s).backgroundColor)")
        )
        assert len(swatches) == len(drawn["keys"])
        for swatch, column in zip(swatches, drawn["data"][1:], strict=True):
            if any(value is not None for value in column):
                assert swatch.removeprefix("rgb(").removesuffix(")").replace(" ", "") in inks


def test_a_series_is_switched_off_and_on(page_of: Callable[..., Page]) -> None:
    page = page_of(charted_run())
    box = chart(page, "occupancy").get_by_role("checkbox", name="of launches")
    box.uncheck()
    assert page.evaluate(DRAWN, "occupancy")[0]["shown"] == [True, True, False]
    box.check()
    assert page.evaluate(DRAWN, "occupancy")[0]["shown"] == [True, True, True]


def test_keys_read_and_zoom(page_of: Callable[..., Page]) -> None:
    page = page_of(charted_run())
    figure = chart(page, "memory-curve")
    whole = page.evaluate(DRAWN, "memory-curve")[0]
    figure.locator(".chart").focus()
    page.keyboard.press("Home")
    page.keyboard.press("ArrowRight")
    second = whole["data"]
    text = page.evaluate("([at, a, b]) => `${cuptiprof.format('instant', at)}: Reserved ${cuptiprof.format('bytes', a)}, Allocated ${cuptiprof.format('bytes', b)}`", [column[1] for column in second])  # fmt: skip
    assert figure.locator(".readout").inner_text() == text
    page.keyboard.press("+")
    low, high = page.evaluate(DRAWN, "memory-curve")[0]["scale"]
    assert high - low == pytest.approx((whole["scale"][1] - whole["scale"][0]) / 2)
    page.keyboard.press("-")
    page.keyboard.press("Escape")
    assert page.evaluate(DRAWN, "memory-curve")[0]["scale"] == whole["scale"]


def test_dragging_zooms_and_the_button_shows_all(page_of: Callable[..., Page]) -> None:
    page = page_of(charted_run())
    figure = chart(page, "memory-curve")
    whole = page.evaluate(DRAWN, "memory-curve")[0]["scale"]
    over = figure.locator(".u-over")
    over.scroll_into_view_if_needed()
    box = over.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 100, box["y"] + 100)
    page.mouse.down()
    page.mouse.move(box["x"] + 300, box["y"] + 100, steps=4)
    page.mouse.up()
    low, high = page.evaluate(DRAWN, "memory-curve")[0]["scale"]
    assert whole[0] < low < high < whole[1]
    figure.get_by_role("button", name="Whole range").click()
    assert page.evaluate(DRAWN, "memory-curve")[0]["scale"] == whole


def measured() -> Result:
    def roofs(**of: float) -> dict[str, float]:
        return {f"roofline_{name}": value for name, value in of.items()}

    peaks = {"fp32_peak": 20e12, "fp16_peak": 40e12, "dram_peak": 1e12, "l2_peak": 4e12}
    low = roofs(fp32_achieved=5e12, fp16_achieved=0.0, dram_achieved=0.5e12, l2_achieved=0.2e12, **peaks)
    high = roofs(fp32_achieved=1e12, fp16_achieved=30e12, dram_achieved=0.1e12, l2_achieved=2e12, **peaks)
    return counted([launch(1, 2), launch(2, 4)], values(1, **low) + values(2, **high))


def dots(page: Page) -> list[dict[str, Any]]:
    return page.locator("#s-roofline svg a").evaluate_all(
        "(all) => all.map((a) => ({ row: Number(a.dataset.row), label: a.getAttribute('aria-label'),"
        " x: Number(a.querySelector('circle').getAttribute('cx')), y: Number(a.querySelector('circle').getAttribute('cy')) }))"
    )


def test_roofline_dots_lie_by_their_logarithms(page_of: Callable[..., Page]) -> None:
    run = measured()
    page = page_of(run)
    rows = run.report("roofline").rows
    assert {dot["row"] for dot in dots(page)} == {i for i, row in enumerate(rows) if row["level"] == "dram"}
    page.locator("#s-roofline").get_by_label("Memory").select_option(label="all")
    found = dots(page)
    assert {dot["row"] for dot in found} == set(range(len(rows)))
    ordered = sorted(found, key=lambda dot: dot["x"])
    assert [rows[dot["row"]]["intensity"] for dot in ordered] == sorted(row["intensity"] for row in rows)
    ordered = sorted(found, key=lambda dot: -dot["y"])
    assert [rows[dot["row"]]["flop_per_s"] for dot in ordered] == sorted(row["flop_per_s"] for row in rows)
    texts = page.locator("#s-roofline svg text.roof").all_text_contents()
    assert any(text.startswith("DRAM 1TB/s") for text in texts) and any("fp16 40TFLOP/s" in text for text in texts)
    page.get_by_label("Precision").select_option(label="fp16")
    assert {rows[dot["row"]]["precision"] for dot in dots(page)} == {"fp16"}


def test_a_dot_leads_to_its_row(page_of: Callable[..., Page]) -> None:
    page = page_of(measured())
    link = page.locator("#s-roofline svg a").first
    row = link.get_attribute("data-row")
    link.focus()
    page.keyboard.press("Enter")
    assert page.locator(f'#s-roofline .table tr[data-row="{row}"]').is_visible()


def test_hostile_names(page_of: Callable[..., Page]) -> None:
    page = page_of(charted_run(name=HOSTILE + "</script><script>alert(1)</script>"))
    assert page.locator("section[data-state=failed]").count() == 0


def test_a_simulated_run_says_so_wherever_one_is(page_of: Callable[..., Page]) -> None:
    page = page_of(charted_run())
    page.locator("#s-memory-curve").scroll_into_view_if_needed()
    mark = page.get_by_role("navigation").get_by_text("SIMULATED")
    assert mark.is_visible()
    assert page.evaluate("(top) => top >= 0 && top < innerHeight", mark.bounding_box()["y"])  # type: ignore[index]


def test_the_licence_of_what_draws_is_in_the_page(page_of: Callable[..., Page]) -> None:
    page = page_of(charted_run())
    page.get_by_text("With uplot").click()
    assert "Leon Sorokin" in page.locator("footer pre").inner_text()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("run", [charted_run, measured], ids=["charts", "roofline"])
def test_axe_finds_nothing(page_of: Callable[..., Page], run: Callable[[], Result], scheme: str) -> None:
    page = page_of(run())
    page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
    found = Axe().run(page).response
    assert found["passes"] and [v["id"] for v in found["violations"]] == []
