"""The timeline in a browser: what is drawn at a place is what ran then, and keys and clicks do what they say."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import trace_path
from playwright.sync_api import Page
from report_results import make_result

import cuptiprof

sys.path.append(str(Path(__file__).resolve().parents[1] / "unit"))
from test_coverage_of_runs import MS
from test_coverage_of_runs import run as paused_run

AREA = "[...document.querySelectorAll('.tl-top')][0].getBoundingClientRect().toJSON()"


@pytest.fixture
def page(page_of: Callable[..., Page]) -> Page:
    page = page_of(cuptiprof.open(trace_path("train-v100")))
    page.locator("#s-timeline").scroll_into_view_if_needed()
    return page


def window(page: Page) -> tuple[float, float]:
    data: dict[str, str] = page.evaluate("({...document.querySelector('.tl').dataset})")
    return float(data["start"]), float(data["end"])


def settled(page: Page) -> None:
    """Zooming takes a few frames."""
    page.wait_for_timeout(400)


def found(page: Page) -> str:
    return page.locator(".tl-found").inner_text()


def columns_of_pixels(page: Page, *shares: float) -> list[list[int]]:
    """All pixels of the lanes below each other, at shares of what is in sight."""
    found: list[list[int]] = page.evaluate(
        """(shares) => {
          const lanes = document.querySelector(".tl-lanes");
          const copy = new OffscreenCanvas(lanes.width, lanes.height);
          const context = copy.getContext("2d", { willReadFrequently: true });
          context.drawImage(lanes, 0, 0);
          return shares.map((share) => [...context.getImageData(Math.round(share * lanes.width), 0, 1, lanes.height).data]);
        }""",
        list(shares),
    )
    return found


def use_at(page: Page, share: float) -> str:
    """What is said of the GPU's use under the pointer."""
    track = page.locator(".tl-track", has_text="GPU utilisation").first.bounding_box()
    lanes = page.locator(".tl-lanes").bounding_box()
    assert track is not None and lanes is not None
    page.mouse.move(lanes["x"] + share * lanes["width"], track["y"] + track["height"] / 2)
    settled(page)
    return page.locator(".tl-tip").inner_text().splitlines()[-1]


def test_time_that_nobody_observed_is_not_drawn_as_idle(page_of: Callable[..., Page]) -> None:
    """Of 13 ms the session was paused from 4 to 9; kernels ran at 0, 2, 10 and 12."""
    seen, said = [], []
    for pauses in ([[4 * MS, 9 * MS]], None):
        page = page_of(paused_run(pauses))
        page.locator("#s-timeline").scroll_into_view_if_needed()
        page.locator(".tl-lanes").wait_for()
        settled(page)
        seen.append(columns_of_pixels(page, 3.4 / 13, 4.4 / 13, 8.6 / 13, 9.4 / 13))
        assert page.get_by_text("Grey: nothing was observed").count() == (pauses is not None)
        said.append([use_at(page, share) for share in (6.5 / 13, 9.5 / 13)])
    (before, first, last, after), idle = seen
    assert first == last != before == after
    assert [before] * 4 == idle
    assert said == [["not observed", "0.0 %"], ["0.0 %", "0.0 %"]]


def test_searching_and_walking(page: Page) -> None:
    result = cuptiprof.open(trace_path("train-v100"))
    wanted = "ConvolutionBackward0"
    ours = sorted(row["start"] for row in result.operators.rows() if wanted in row["name"])
    page.keyboard.press("/")
    page.locator(".tl-search").fill(wanted)
    page.locator(".tl-found:not(:empty)").wait_for(state="attached")
    assert int(found(page).split(" ")[0].replace(",", "")) >= len(ours) > 100
    page.get_by_label("Next of those found (N)").click()
    settled(page)
    assert found(page).startswith("1 of ")
    panel = page.locator(".tl-panel").inner_text()
    assert wanted in panel
    before = window(page)
    page.get_by_label("Next of those found (N)").click()
    settled(page)
    assert found(page).startswith("2 of ") and window(page)[0] >= before[0]
    page.locator(".tl-top").focus()
    page.keyboard.press("Escape")
    assert found(page) == "" and "Click a slice" in page.locator(".tl-panel").inner_text()


def test_zoom_pan_and_back(page: Page) -> None:
    whole = window(page)
    page.locator(".tl-top").focus()
    for _ in range(10):
        page.keyboard.press("w")
    settled(page)
    near = window(page)
    assert near[1] - near[0] < (whole[1] - whole[0]) / 4 and near[0] >= whole[0] and near[1] <= whole[1]
    page.keyboard.press("d")
    settled(page)
    moved = window(page)
    assert moved[0] > near[0] and moved[1] - moved[0] == pytest.approx(near[1] - near[0])
    page.get_by_label("Show the whole run (0)").click()
    settled(page)
    assert window(page) == pytest.approx(whole)


def test_a_click_tells_what_is_there(page: Page) -> None:
    """The longest call of the run, by the place that it must be drawn at."""
    result = cuptiprof.open(trace_path("train-v100"))
    longest = max(result.api_calls.rows(), key=lambda row: row["end"] - row["start"])
    first = min(int(t["start"].min()) for t in result.tables.values() if len(t) and "start" in t.column_names)
    middle = (longest["start"] + longest["end"]) / 2 - first
    area: dict[str, Any] = page.evaluate(AREA)
    start, end = window(page)
    x = area["x"] + area["width"] * (middle - start) / (end - start)
    said = []
    for y in range(int(area["y"]) + 4, int(area["y"] + area["height"]), 8):
        page.mouse.click(x, y)
        text = page.locator(".tl-panel").inner_text()
        if longest["name"] in text:
            said.append(text)
    assert said and f"{longest['end'] - longest['start']:,} ns" in said[0]


def test_what_is_in_sight_as_a_table(page: Page) -> None:
    page.get_by_text("What is in sight, as a table").click()
    page.wait_for_selector(".tl-sight table")
    assert page.locator(".tl-sight tr").count() > 10


def test_waits_and_regions_stand_under_their_gpu(page_of: Callable[..., Page]) -> None:
    """With a thread that has a name, which is text whatever is in it."""
    regions = [{"name": "fwd", "path": "fwd", "start": 0, "end": 90, "thread": 7, "instance": 1}]
    kernels = [{"name": "k", "start": 20, "end": 70, "stream": 7, "region_instance": 1}]
    waits = [{"type": 3, "stream": 7, "start": 30, "end": 75}]
    tables = {"regions": regions, "kernels": kernels, "synchronizations": waits}
    page = page_of(make_result(tables, {"pid": 7, "nvtx_names": {"threads": {"7": "<b>trainer</b>"}}}))
    page.locator("#s-timeline").scroll_into_view_if_needed()
    rows = page.locator(".tl-labels > *").evaluate_all("(all) => all.map((one) => one.title)")
    thread = rows.index("<b>trainer</b> (7) (main)")
    gpu = next(i for i, row in enumerate(rows) if row.startswith("GPU 0"))
    assert gpu < rows.index("stream 7: regions") < rows.index("stream 7") < rows.index("stream 7: waits") < thread
    page.locator(".tl-search").fill("fwd")
    page.get_by_text("2 found").wait_for()
