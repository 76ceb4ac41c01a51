"""Scripts and styles that lie in a page, and the content security policy that lets only those in."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Sequence

_ENDS = re.compile(r"</(script|style)|<!--", re.IGNORECASE)


def inline(text: str) -> str:
    """A script or style as it may stand inside its element.

    Raises:
        ValueError: a browser would see its end, or a comment, too early.
    """
    if found := _ENDS.search(text):
        raise ValueError(f"cannot stand in a page: {found.group()}")
    return text.replace("\r\n", "\n")


def content_security_policy(scripts: Sequence[str], styles: Sequence[str]) -> str:
    """Nothing from elsewhere, no code from texts, no form; the given scripts and styles by their hashes, and images that lie in the page."""
    parts = ["default-src 'none'", "img-src data:", "base-uri 'none'", "form-action 'none'"]
    for name, texts in (("script-src", scripts), ("style-src", styles)):
        if texts:
            parts.append(f"{name} {' '.join(_source(text) for text in texts)}")
    return "; ".join(parts)


def _source(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
