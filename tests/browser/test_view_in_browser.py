"""``cuptiprof view`` in a browser: the page, and Perfetto's UI with our trace, with nothing asked of anywhere else."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from report_results import training_step
from watched_programs import command, environment

import cuptiprof

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

TRACE = Path(__file__).resolve().parents[1] / "data" / "traces" / "alexnet-a100.json.gz"
# What Perfetto's UI says of its own, and what our policy keeps it from asking of others.
PERFETTO_SAYS = (
    "navigate-to",
    "storage.cloud.google.com",
    "127.0.0.1:9001",
    "live_reload",
    "LiveReload",
    "Failed to load resource",
)


class Served:
    """A page that ``view`` serves, and what it said and asked for."""

    def __init__(self, browser: Browser, words: list[str]) -> None:
        self._process = subprocess.Popen(
            command("view", *words, "--no-browser"), env=environment(), stdout=subprocess.PIPE, text=True
        )
        assert self._process.stdout is not None
        self.url = self._process.stdout.readline().strip()
        self.base = self.url.partition("#")[0]
        self.said: list[str] = []
        self.failed: list[str] = []
        self.answered: list[str] = []
        self.page: Page = browser.new_context(viewport={"width": 1400, "height": 900}).new_page()
        self.page.on("console", lambda m: self.said.append(m.text) if m.type == "error" else None)
        self.page.on("pageerror", lambda e: self.said.append(str(e)))
        self.page.on("requestfailed", lambda r: self.failed.append(r.url))
        self.page.on("response", lambda r: self.answered.append(r.url))
        self.page.goto(self.url)

    def end(self) -> None:
        self.page.context.close()
        self._process.send_signal(signal.SIGINT)
        assert self._process.wait(30) == 0


@pytest.fixture
def served(browser: Browser, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Served]:
    if request.param == "run":
        training_step().save(tmp_path / "run.cuptiprof")
    words = {"run": [str(tmp_path / "run.cuptiprof")], "perfetto": [str(TRACE), "--perfetto"]}[request.param]
    out = Served(browser, words)
    yield out
    out.end()


@pytest.mark.parametrize("served", ["run"], indirect=True)
def test_the_page(served: Served) -> None:
    page = served.page
    page.wait_for_selector("html[data-state=complete]", state="attached")
    assert page.title().startswith("run.cuptiprof")
    assert page.locator("section").count() > 0
    assert served.answered == [served.url] and not served.said and not served.failed


@pytest.mark.parametrize("served", ["run"], indirect=True)
def test_another_page_cannot_read_it(browser: Browser, served: Served, tmp_path: Path) -> None:
    """One that even knows the address."""
    (tmp_path / "evil.html").write_text("<!DOCTYPE html><title>evil</title>")
    page = browser.new_context().new_page()
    page.goto((tmp_path / "evil.html").as_uri())
    for mode in ("cors", "no-cors"):
        read = page.evaluate(
            "([url, mode]) => fetch(url, {mode}).then(r => r.text()).catch(e => 'refused')", [served.url, mode]
        )
        assert read in ("refused", "")
    page.evaluate(
        "url => { const f = document.createElement('iframe'); f.src = url; document.body.append(f); }", served.url
    )
    page.wait_for_timeout(1000)
    assert all("cuptiprof" not in frame.title() for frame in page.frames[1:])
    page.context.close()


@pytest.mark.parametrize("served", ["perfetto"], indirect=True)
def test_perfetto_shows_the_trace(served: Served) -> None:
    page, result = served.page, cuptiprof.open(TRACE)
    page.wait_for_function("document.title.startsWith('run.pftrace')", timeout=60_000)
    page.get_by_text("GPU 0").first.wait_for(timeout=60_000)
    page.get_by_text("Query (SQL)").click()
    page.locator(".cm-content").click()
    page.keyboard.type("select 'kernels: ' || count(*) as n from slice where category = 'kernel'")
    page.keyboard.press("Control+Enter")
    page.get_by_text(f"kernels: {len(result.kernels)}").wait_for(timeout=60_000)
    elsewhere = [url for url in served.answered if not url.startswith((served.base, "blob:", "data:"))]
    assert all(url.endswith("/live_reload") for url in elsewhere)  # which is answered with 404
    unexpected = [text for text in served.said if not any(known in text for known in PERFETTO_SAYS)]
    assert not unexpected
