"""Pages of the site that are made of what the project says elsewhere: a line ``<!-- NAME -->`` is replaced by what NAME gives."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def fill(text: str) -> str:
    """The text of a page with its parts put in."""
    return re.sub(r"^<!-- (\w[\w ]*) -->$", lambda m: "\n".join(PARTS[m[1]]()), text, flags=re.MULTILINE)


def command_line() -> Iterator[str]:
    """``--help`` of every command."""
    os.environ["COLUMNS"] = "100"
    from cuptiprof.cli import make_parser

    parser = make_parser()
    commands = next(a for a in parser._actions if isinstance(a, argparse._SubParsersAction))
    for name, command in {"": parser, **commands.choices}.items():
        yield f"## cuptiprof {name}".rstrip()
        yield from ("", "```text", command.format_help().rstrip(), "```", "")


def tables() -> Iterator[str]:
    """Columns of every table, as the native module declares them."""
    from cuptiprof import _core

    for table, _, about, columns in _core.schema():
        yield from (f"## {table}", "", f"{about[:1].upper()}{about[1:]}.", "")
        yield from ("| column | type | unit | what |", "|---|---|---|---|")
        for name, kind, is_text, unit, what, _ in columns:
            yield f"| `{name}` | {'str' if is_text else kind} | {unit} | {_cell(what)} |"
        yield ""


def metrics() -> Iterator[str]:
    """What a session publishes."""
    from cuptiprof.publish.published_metrics import METRICS

    yield from ("| Prometheus | OpenTelemetry | unit | kind | labels | what |", "|---|---|---|---|---|---|")
    ends = {"counter": "_total", "info": "_info", "histogram": "_bucket, _sum, _count"}
    for metric in METRICS:
        name = metric.name + (".info" if metric.kind == "info" else "")
        end = ends.get(metric.kind, "")
        prometheus = metric.prometheus_name + (end if metric.kind != "histogram" else "")
        labels = ", ".join(f"`{label}`" for label in metric.labels) or (
            f"`le` ({end})" if metric.kind == "histogram" else ""
        )
        yield f"| `{prometheus}` | `{name}` | {metric.unit} | {metric.kind} | {labels} | {_cell(metric.text)} |"


def contributing() -> Iterator[str]:
    yield _from_docs((ROOT / "CONTRIBUTING.md").read_text())


def changes() -> Iterator[str]:
    yield _from_docs((ROOT / "CHANGELOG.md").read_text())


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")


def _from_docs(text: str) -> str:
    """Links as seen from the folder of the docs; what lies outside of it is no page, and only named."""

    def link(m: re.Match[str]) -> str:
        if m[2].startswith(("https:", "#")):
            return m[0]
        return f"[{m[1]}]({m[2].removeprefix('docs/')})" if m[2].startswith("docs/") else m[1]

    return re.sub(r"\[([^]]+)\]\(([^)]+)\)", link, text)


PARTS: dict[str, Callable[[], Iterator[str]]] = {
    "command line": command_line,
    "tables": tables,
    "metrics": metrics,
    "contributing": contributing,
    "changes": changes,
}
