"""A browser, and pages opened in it that may not complain nor ask for anything."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cuptiprof.data.result import Result
from cuptiprof.page import PageRun, write_page

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

sys.path.append(str(Path(__file__).resolve().parents[1] / "unit"))  # report_results

_NAMES = ("chromium", "chromium-browser", "google-chrome")


def _chromium() -> str:
    for name in (os.environ.get("CUPTIPROF_CHROMIUM"), *_NAMES):
        if name and (path := shutil.which(name)):
            return path
    pytest.fail("these tests need Chromium: apt-get install chromium, or CUPTIPROF_CHROMIUM=/path/to/it", pytrace=False)


# Of a module: while it is open playwright's event loop runs in this thread, and asyncio.run() cannot.
@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        pytest.fail("these tests need playwright: pip install 'cuptiprof[test]'", pytrace=False)
    path = _chromium()
    with sync_playwright() as playwright:
        # A browser that runs as root has no sandbox.
        opened = playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        yield opened
        opened.close()


@pytest.fixture
def open_page(browser: Browser, tmp_path: Path) -> Iterator[Callable[[Path], Page]]:
    """Opens a file; after the test there was no message on the console, and nothing was asked of anywhere else."""
    said: list[str] = []
    asked: list[str] = []
    pages: list[Page] = []

    def opened(path: Path) -> Page:
        page = browser.new_context(viewport={"width": 1280, "height": 900}).new_page()
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("request", lambda request: None if request.url == path.as_uri() else asked.append(request.url))
        page.on("dialog", lambda dialog: (said.append(f"dialog: {dialog.message}"), dialog.dismiss()))
        page.goto(path.as_uri())
        pages.append(page)
        return page

    yield opened
    for page in pages:
        page.context.close()
    assert not said
    assert not asked


@pytest.fixture
def page_of(open_page: Callable[[Path], Page], tmp_path: Path) -> Callable[..., Page]:
    """``page_of(result)``, or of several runs: their page, opened, with every section drawn."""

    def of(*results: Result) -> Page:
        path = tmp_path / "page.html"
        names = ["run"] if len(results) == 1 else [f"run {i}" for i in range(len(results))]
        write_page([PageRun(name, result) for name, result in zip(names, results, strict=True)], path)
        page = open_page(path)
        page.wait_for_selector("html[data-state=complete]", state="attached")
        return page

    return of
