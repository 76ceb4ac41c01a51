"""The HTML report of 10^3, 10^5, 10^6 kernels: python -m benchmarks.page [--kernels N ...]

A training loop of N kernels (that of benchmarks.scale: a driver call a launch, copies, regions) as a page, opened in headless Chromium with
software rendering: seconds to write it, its size, of that the timeline's data, first paint, until every section is drawn, memory of the scripts,
and frames a second while the timeline is zoomed and moved by its keys, 30 times a second.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.common import arguments, finish, significant
from benchmarks.scale import FEW, build
from cuptiprof.page import PageRun, write_page

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

SECONDS = 3.0
FRAMES = """([keys, ms]) => new Promise((done) => {
  const canvas = document.querySelector(".tl-top");
  const times = [];
  let pressed = 0;
  const press = setInterval(() => {
    canvas.dispatchEvent(new KeyboardEvent("keydown", { key: keys[pressed++ % keys.length], bubbles: true }));
  }, 33);
  const frame = (now) => {
    times.push(now);
    if (now - times[0] < ms) return requestAnimationFrame(frame);
    clearInterval(press);
    const gaps = times.slice(1).map((time, i) => time - times[i]).sort((a, b) => a - b);
    done({ rate: (1000 * gaps.length) / (times.at(-1) - times[0]), longest: gaps.at(-1) });
  };
  requestAnimationFrame(frame);
})"""
"""Frames while keys are pressed: how many a second, and the longest time between two in ms."""
MOVES = {"zoom in": "w", "move": "d", "zoom out": "s", "move the whole": "ad"}


def paints(page: Page) -> float:
    found: float = page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime")
    return found


def case(browser: Browser, kernels: int, path: Path) -> dict[str, Any]:
    result = build(kernels, FEW)
    began = time.perf_counter()
    write_page([PageRun("run", result)], path)
    written = time.perf_counter() - began
    page = browser.new_context(viewport={"width": 1400, "height": 900}).new_page()
    page.goto(path.as_uri())
    page.wait_for_selector("html[data-state=complete]", state="attached", timeout=120_000)
    complete = page.evaluate("performance.now()")
    page.evaluate("document.querySelector('.tl').scrollIntoView()")
    frames = {}
    for what, keys in MOVES.items():
        found = page.evaluate(FRAMES, [keys, 1000 * SECONDS])
        frames[what] = {
            "per_second": significant(float(found["rate"]), 3),
            "longest_ms": significant(float(found["longest"]), 3),
        }
    out = {
        "kernels": kernels,
        "slices": sum(
            len(result.tables[name])
            for name in ("kernels", "memcpys", "memsets", "api_calls", "regions", "operators", "markers")
        ),
        "write_seconds": significant(written, 3),
        "bytes": path.stat().st_size,
        "timeline_bytes": page.evaluate("document.getElementById('data-timeline').textContent.length"),
        "first_paint_ms": significant(float(paints(page)), 3),
        "complete_ms": significant(float(complete), 3),
        "script_memory_mb": significant(float(page.evaluate("performance.memory.usedJSHeapSize / 1e6")), 3),
        "frames": frames,
    }
    page.context.close()
    return out


def main() -> None:
    from playwright.sync_api import sync_playwright

    parser = arguments(__doc__)
    parser.add_argument("--kernels", type=int, nargs="+", default=[1_000, 100_000, 1_000_000])
    options = parser.parse_args()
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as folder:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        cases = [case(browser, kernels, Path(folder) / f"{kernels}.html") for kernels in options.kernels]
        finish({"benchmark": "page", "browser": browser.version, "cases": cases}, options.out)
        browser.close()


if __name__ == "__main__":
    main()
