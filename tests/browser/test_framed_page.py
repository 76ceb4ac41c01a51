"""The report in a notebook's cell: it is drawn, and reaches nothing of the notebook."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from report_results import training_step

from cuptiprof.integrations.framed_page import FramedPage

if TYPE_CHECKING:
    from playwright.sync_api import Browser


def test_the_page_in_a_frame(browser: Browser, tmp_path: Path) -> None:
    notebook = tmp_path / "notebook.html"
    cell = FramedPage(training_step(), "mine </iframe><script>document.title='broken'</script>", height=500)
    notebook.write_text(f"<!DOCTYPE html><title>notebook</title><p>secret</p>{cell._repr_html_()}", encoding="utf-8")
    page = browser.new_context(viewport={"width": 1000, "height": 700}).new_page()
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.goto(notebook.as_uri())
    drawn = page.frame_locator("iframe").locator("html[data-state=complete]")
    drawn.wait_for(state="attached", timeout=90_000)
    (frame,) = page.frames[1:]
    assert page.title() == "notebook" and frame.title().startswith("mine </iframe><script>")
    assert frame.locator("section").count() > 0
    assert page.locator("iframe").bounding_box()["height"] == 500  # type: ignore[index]
    reached = frame.evaluate("() => { try { return parent.document.body.innerText; } catch (e) { return e.name; } }")
    assert reached == "SecurityError"
    assert not said
    page.context.close()
