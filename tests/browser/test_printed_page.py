"""A page that is dark is printed dark on white: text by its style, canvases drawn anew before the print and after it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page
from test_charts import charted_run

CANVASES = (
    "[...document.querySelectorAll('canvas:not(.tl-top)')].filter((c) => c.width && c.height).map((c) => c.toDataURL())"
)
STYLE = "(() => { const s = getComputedStyle(document.body); return [s.color, s.backgroundColor]; })()"


def drawn(page: Page) -> list[str]:
    """Every canvas, once it is at rest."""
    page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    found: list[str] = page.evaluate(CANVASES)
    return found


@pytest.mark.parametrize("by", ["the system", "the button"])
def test_dark_pages_are_printed_dark_on_white(page_of: Callable[..., Page], by: str) -> None:
    page = page_of(charted_run())
    light, style = drawn(page), page.evaluate(STYLE)
    if by == "the system":
        page.emulate_media(color_scheme="dark")
    else:
        page.locator("#theme").click()
    dark = drawn(page)
    assert len(light) > 4 and all(one != other for one, other in zip(light, dark, strict=True))
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.evaluate(STYLE) == style
    assert drawn(page) == light
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.evaluate(STYLE) != style
    assert drawn(page) == dark


def test_a_real_print_asks_for_it(page_of: Callable[..., Page]) -> None:
    page = page_of(charted_run())
    page.emulate_media(color_scheme="dark")
    page.evaluate(
        """() => {
          window.seen = [];
          for (const when of ["beforeprint", "afterprint"]) addEventListener(when, () => window.seen.push(document.documentElement.hasAttribute("data-printing")));
        }"""
    )
    page.pdf()
    page.wait_for_function("window.seen.length === 2")
    assert page.evaluate("window.seen") == [True, False]
    assert not page.evaluate("document.documentElement.hasAttribute('data-printing')")


def test_without_scripts_the_style_alone_is_light(page_of: Callable[..., Page]) -> None:
    page = page_of(charted_run())
    style = page.evaluate(STYLE)
    page.locator("#theme").click()
    page.emulate_media(media="print")
    assert page.evaluate(STYLE) == style
