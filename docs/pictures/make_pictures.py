"""Makes the pictures of the README and the documentation from real runs on the simulated device: python docs/pictures/make_pictures.py [NAME ...]

overview.svg    what ``cuptiprof demo`` prints on a terminal of 96 columns: a recorded training run through the whole collector
flame.svg, timeline.svg, kernels.svg
                ``result.plot()`` of the run of ``training()``
timeline.png
                the HTML report of the demo's run in Chromium (``CUPTIPROF_CHROMIUM`` says where it is), by playwright
flame-graph.png that of the run of ``training()``

Every one of them says that it is SIMULATED.
"""

from __future__ import annotations

import io
import os
import re
import shutil
import sys
import tempfile
from functools import cache
from importlib.resources import as_file, files
from pathlib import Path

from rich.console import Console
from rich.text import Text

import cuptiprof
from cuptiprof.page import PageRun, write_page

WIDTH = 96
SIZE = {"width": 1280, "height": 900}
HERE = Path(__file__).parent
PLOTS = {"flame.svg": ("flame", {"by": "region"}), "timeline.svg": ("timeline", {}), "kernels.svg": ("kernels", {})}


@cache
def demo() -> cuptiprof.Result:
    """The run of ``cuptiprof demo``."""
    with (
        as_file(files("cuptiprof").joinpath("sim/traces/train-v100.json.gz")) as trace,
        cuptiprof.profile(device=f"replay:{trace}") as prof,
    ):
        pass
    return prof.result()


@cache
def training() -> cuptiprof.Result:
    """Eight steps of a small network with regions, operators, modules and memory."""
    import torch
    from torch import nn

    net = nn.Sequential(nn.Linear(512, 2048), nn.GELU(), nn.Linear(2048, 2048), nn.GELU(), nn.Linear(2048, 10))
    optimizer = torch.optim.Adam(net.parameters())
    with cuptiprof.profile(
        device="sim",
        activities=["kernel", "memcpy", "memset", "runtime", "allocator"],
        sources=["operators", "modules"],
    ) as prof:
        for _ in range(8):
            with cuptiprof.region("forward"):
                loss = net(torch.randn(256, 512)).square().mean()
            with cuptiprof.region("backward"):
                loss.backward()
            with cuptiprof.region("optimizer"):
                optimizer.step()
                optimizer.zero_grad()
            prof.step()
    return prof.result()


SCREENSHOTS = {
    "timeline.png": (demo, "light", "timeline"),
    "flame-graph.png": (training, "light", "flame"),
}
"""Name: run, colours, and the section that is on top."""


def overview() -> str:
    """The overview of the demo run as an SVG of a terminal."""
    os.environ.update(TERM="xterm-256color", COLORTERM="truecolor")
    os.environ.pop("NO_COLOR", None)
    shown = demo().overview(limit=5).to("rich", width=WIDTH)
    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True, color_system="truecolor")
    console.print(Text("$ cuptiprof demo --limit 5", style="bold"))
    console.print(Text.from_ansi(shown))
    svg = console.export_svg(title="cuptiprof", unique_id="cuptiprof")
    return re.sub(r"[ \t]+$", "", svg, flags=re.MULTILINE)


def screenshots(names: list[str], folder: Path) -> None:
    """Sections of the HTML report."""
    from playwright.sync_api import sync_playwright

    chromium = os.environ.get("CUPTIPROF_CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    with tempfile.TemporaryDirectory() as temporary, sync_playwright() as playwright:
        report = Path(temporary, "report.html")
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        for name in names:
            run, colors, section = SCREENSHOTS[name]
            write_page([PageRun("train.py", run())], report)
            page = browser.new_context(viewport=SIZE, color_scheme=colors).new_page()
            page.goto(report.as_uri())
            page.wait_for_selector("html[data-state=complete]", state="attached")
            page.evaluate("(id) => document.getElementById(id).scrollIntoView()", f"s-{section}")
            page.wait_for_timeout(300)
            page.screenshot(path=folder / name)
        browser.close()


def main(names: list[str], folder: Path = HERE) -> None:
    """Make the named pictures, all of them where none is named."""
    known = ["overview.svg", *PLOTS, *SCREENSHOTS]
    if unknown := [name for name in names if name not in known]:
        sys.exit(f"no picture {unknown[0]!r}; one of: {', '.join(known)}")
    wanted = names or known
    if "overview.svg" in wanted:
        (folder / "overview.svg").write_text(overview(), encoding="utf-8")
    for name, (kind, options) in PLOTS.items():
        if name in wanted:
            training().plot(kind, **options).save(folder / name)
    if pages := [name for name in SCREENSHOTS if name in wanted]:
        screenshots(pages, folder)


if __name__ == "__main__":
    main(sys.argv[1:])
