"""Jinja with everything escaped."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def render_template(path: Path, **values: Any) -> str:
    """The template with its values; each text is escaped, a name that is not given is an error."""
    import jinja2  # here: a quarter of a command's start, and few commands make pages

    engine = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    return engine.from_string(path.read_text(encoding="utf-8")).render(**values)
