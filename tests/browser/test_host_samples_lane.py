"""Samples of perf on the page's timeline in a browser: found by name, their stack told, hostile names shown as text."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import Page
from report_results import make_result

from cuptiprof.data.result import Result


def sampled(folder: Path) -> Result:
    kernels = [{"name": "k", "start": 1_000_000, "end": 7_000_000}]
    hostile = "<img/src=x/onerror=alert(1)>"
    (folder / "perf.txt").write_text(
        f"python3 7/7 0.004000000: cpu-clock: \n\t 1f load_batch (lib)\n\t 1f {hostile} (lib)\n\n"
    )
    return make_result({"kernels": kernels}, {"pid": 7}).with_host_samples(folder / "perf.txt")


def test_a_sample_is_found_and_tells_its_stack(page_of: Callable[..., Page], tmp_path: Path) -> None:
    page = page_of(sampled(tmp_path))
    page.locator("#s-timeline").scroll_into_view_if_needed()
    assert "samples" in page.locator(".tl-labels").inner_text()
    page.locator(".tl-search").fill("load_batch")
    page.get_by_text("1 found").wait_for()
    page.get_by_label("Next of those found (N)").click()
    said = page.locator(".tl-panel").inner_text()
    assert "load_batch < <img/src=x/onerror=alert(1)>" in said and "thread 7 (main)" in said
