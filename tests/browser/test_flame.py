"""The flame graph: as wide as the analysis says, zoomed, searched, by mouse and by keys."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from charted_run import charted_run
from playwright.sync_api import Page
from report_results import HOSTILE, make_result

from cuptiprof.analysis.trees.flame_tree import flame_tree
from cuptiprof.page.packed import page_text

BOXES = """() => [...document.querySelectorAll("#s-flame .flame > div")].map((box) => ({
  row: Number(box.dataset.row), label: box.getAttribute("aria-label"), level: Number(box.getAttribute("aria-level")),
  left: box.offsetLeft, width: box.getBoundingClientRect().width, top: box.offsetTop,
}))"""
FOCUSED = "() => Number(document.activeElement.dataset.row)"


@pytest.mark.parametrize(("by", "shown"), [("region", "region"), ("python", "Python stack")])
def test_boxes_are_as_wide_as_their_time(page_of: Callable[..., Page], by: str, shown: str) -> None:
    run = charted_run()
    page = page_of(run)
    page.locator("#s-flame .tools select").first.select_option(label=shown)
    tree = flame_tree(run, by)  # type: ignore[arg-type]
    assert tree is not None
    boxes = page.evaluate(BOXES)
    width = page.locator(".flame").bounding_box()["width"]  # type: ignore[index]
    assert len(boxes) == len(tree)
    for box in boxes:
        row = box["row"]
        assert box["width"] == pytest.approx(tree.total[row] / tree.whole * width - 1, abs=1)
        assert box["level"] == tree.depth[row] + 1 and box["label"].startswith(page_text(tree.names[row]))
    # Only the table of what is shown.
    assert page.locator("#s-flame .table:visible").count() == 1
    assert page.locator("#s-flame .table:visible h3").inner_text() == f"GPU time by {shown}"


def test_zoom_by_mouse_and_back(page_of: Callable[..., Page]) -> None:
    run = charted_run()
    page = page_of(run)
    tree = flame_tree(run, "region")
    assert tree is not None
    row = tree.names.index("forward")
    page.locator(f'.flame [data-row="{row}"]').click()
    boxes = {box["row"]: box for box in page.evaluate(BOXES)}
    inside = [i for i in range(row + 1, len(tree)) if tree.depth[i] > tree.depth[row]]
    assert boxes[row]["width"] == boxes[0]["width"]
    assert set(boxes) <= {0, row, *inside}
    first = row + 1
    assert boxes[first]["width"] == pytest.approx(
        tree.total[first] / tree.total[row] * (boxes[row]["width"] + 1), abs=2
    )
    page.get_by_role("button", name="Whole graph").click()
    assert len(page.evaluate(BOXES)) == len(tree)


def test_keys(page_of: Callable[..., Page]) -> None:
    run = charted_run()
    page = page_of(run)
    tree = flame_tree(run, "region")
    assert tree is not None
    page.locator('.flame [tabindex="0"]').focus()
    assert page.evaluate(FOCUSED) == 0
    page.keyboard.press("ArrowDown")
    assert page.evaluate(FOCUSED) == 1
    page.keyboard.press("ArrowRight")
    second = next(i for i in range(2, len(tree)) if tree.depth[i] == 1)
    assert page.evaluate(FOCUSED) == second
    page.keyboard.press("Enter")
    assert page.locator(f'.flame [data-row="{second}"]').get_attribute("aria-selected") == "true"
    assert page.evaluate(FOCUSED) == second
    page.keyboard.press("Escape")
    assert len(page.evaluate(BOXES)) == len(tree)
    page.keyboard.press("ArrowLeft")
    assert page.evaluate(FOCUSED) == 1
    page.keyboard.press("ArrowUp")
    assert page.evaluate(FOCUSED) == 0
    page.keyboard.press("End")  # no key of the graph
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Home")
    assert page.evaluate(FOCUSED) == 0
    assert page.locator('.flame [tabindex="0"]').count() == 1


def test_search_adds_up_outermost_matches(page_of: Callable[..., Page]) -> None:
    run = make_result({"kernels": [
        {"name": "gemm", "start": 0, "end": 600, "region": "gemm/inner"}, {"name": "gemm", "start": 600, "end": 700, "region": "x"},
        {"name": "other", "start": 700, "end": 1000, "region": "x"},
    ]})  # fmt: skip
    page = page_of(run)
    page.get_by_label("Search the flame graph").fill("GEMM")
    assert page.locator("#s-flame [role=status]").first.inner_text() == "3 match: 700ns, 70.00% of all"
    assert page.locator("#s-flame .flame .match").count() == 3
    page.get_by_label("Search the flame graph").fill("nothing is called so")
    assert page.locator("#s-flame [role=status]").first.inner_text() == "0 match: 0ns, 0.00% of all"
    page.get_by_label("Search the flame graph").fill("")
    assert page.locator("#s-flame .flame .match").count() == 0


def test_hostile_names(page_of: Callable[..., Page]) -> None:
    names = [HOSTILE, "</script><script>alert(1)</script>", "x" * 65536]
    page = page_of(
        make_result({"kernels": [{"name": n, "start": 1, "end": 500, "region": n.replace("/", "|")} for n in names]})
    )
    labels = [box["label"] for box in page.evaluate(BOXES)]
    assert any(label.startswith("</script><script>alert(1)") for label in labels)
    assert not any("\x1b" in label or "\u202e" in label for label in labels)
