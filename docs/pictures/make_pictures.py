"""Makes the pictures of the README from real runs: python docs/pictures/make_pictures.py

overview.svg is what ``cuptiprof demo`` prints on a terminal of 96 columns: a recorded training run through the whole collector.
"""

from __future__ import annotations

import io
import os
import re
from importlib.resources import as_file, files
from pathlib import Path

from rich.console import Console
from rich.text import Text

import cuptiprof

WIDTH = 96
HERE = Path(__file__).parent


def overview() -> str:
    """The overview of the demo run as an SVG of a terminal."""
    with (
        as_file(files("cuptiprof").joinpath("sim/traces/train-v100.json.gz")) as trace,
        cuptiprof.profile(device=f"replay:{trace}") as prof,
    ):
        pass
    os.environ.update(TERM="xterm-256color", COLORTERM="truecolor")
    os.environ.pop("NO_COLOR", None)
    shown = prof.result().overview(limit=5).to("rich", width=WIDTH)
    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True, color_system="truecolor")
    console.print(Text("$ cuptiprof demo --limit 5", style="bold"))
    console.print(Text.from_ansi(shown))
    svg = console.export_svg(title="cuptiprof", unique_id="cuptiprof")
    return re.sub(r"[ \t]+$", "", svg, flags=re.MULTILINE)


if __name__ == "__main__":
    (HERE / "overview.svg").write_text(overview(), encoding="utf-8")
