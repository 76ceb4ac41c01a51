"""The README's picture is what the program prints."""

from __future__ import annotations

import re
import runpy
from html import unescape
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text()


def texts(svg: str) -> list[str]:
    """What an SVG of a terminal says."""
    return [unescape(text).replace("\xa0", " ") for text in re.findall(r"<text[^>]*>([^<]*)</text>", svg)]


def test_the_picture_is_of_a_real_run() -> None:
    path = re.search(r"!\[[^]]*\]\(([^)]*\.svg)\)", README)
    assert path is not None
    said = texts((ROOT / path[1]).read_text())
    assert any("SIMULATED" in text for text in said) and any("Top kernels" in text for text in said)
    makes = runpy.run_path(str(ROOT / "docs" / "pictures" / "make_pictures.py"))
    assert texts(makes["overview"]()) == said  # python docs/pictures/make_pictures.py


def test_the_first_screen_is_short() -> None:
    first = README[: README.index("\n## ")]
    assert first.count("\n* ") == 6 and first.count("![") == 1 and max(map(len, first.splitlines())) <= 120
