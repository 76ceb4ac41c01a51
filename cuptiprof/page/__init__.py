"""The HTML report: a run, or two compared, as one file that loads nothing from elsewhere (docs/html.md).

A section is a file in ``sections/`` that gives a :class:`~cuptiprof.page.section.Section`, one line in ``sections/__init__.py``, and the
JavaScript in ``assets/`` that mounts it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from cuptiprof.data.result import Result
from cuptiprof.io.files import replacing_file
from cuptiprof.page.licences import licences
from cuptiprof.page.packed import page_text
from cuptiprof.page.policy import content_security_policy, inline
from cuptiprof.page.run_facts import run_facts
from cuptiprof.page.section import ASSETS, VENDORED, Section
from cuptiprof.page.sections import SECTIONS
from cuptiprof.page.sections.report_tables import difference
from cuptiprof.page.template import render_template
from cuptiprof.report.model import Report
from cuptiprof.version import __version__

_SCRIPTS = ("columns.js", "page.js", "format.js", "table_rows.js", "table.js")
_STYLES = ("theme.css", "page.css", "table.css")


@dataclass(frozen=True)
class PageRun:
    """One of the runs of a page and what it is called."""

    name: str
    result: Result


def run_name(result: Result) -> str:
    """What a run is called where nobody says: what was run."""
    argv = result.metadata.get("argv")
    command = " ".join(str(a) for a in argv) if isinstance(argv, list) else ""
    return command or str(result.metadata.get("device", "")).partition(":")[2] or "run"


def write_page(runs: Sequence[PageRun], path: Path, differences: Sequence[Report] = ()) -> None:
    """Write the page of a run to a file, which is replaced.

    Args:
        differences: reports of how the second run differs from the first (``Result.diff``); they stand first.

    Raises:
        ResultError: it cannot be written.
    """
    text = make_page(runs, differences)
    with replacing_file(path, overwrite=True) as temporary:
        temporary.write_text(text, encoding="utf-8", errors="backslashreplace")


def make_page(runs: Sequence[PageRun], differences: Sequence[Report] = ()) -> str:
    """The page as text; see :func:`write_page`."""
    groups = [(run, [s for make in SECTIONS if (s := make(run.result.timed())) is not None]) for run in runs]
    if differences:
        groups[0][1].insert(0, difference(tuple(differences)))
    sections = [section for _, of in groups for section in of]
    vendored = _of(sections, "vendored")
    scripts, styles = (list(_read([n for n in vendored if n.endswith(end)], VENDORED)) for end in (".js", ".css"))
    scripts += _read([*_SCRIPTS, *_of(sections, "scripts")], ASSETS)
    styles = ["".join([*styles, *_read([*_STYLES, *_of(sections, "styles")], ASSETS)])]
    return render_template(
        Path(__file__).with_name("page.html.j2"),
        title=page_text(" and ".join(run.name for run in runs)),
        policy=content_security_policy(scripts, styles),
        styles=styles,
        scripts=scripts,
        groups=[
            {"facts": run_facts(run.name, run.result), "prefix": f"{i}-" if i else "", "sections": of}
            for i, (run, of) in enumerate(groups)
        ],
        licences=licences(vendored),
        version=__version__,
    )


def _of(sections: Sequence[Section], what: str) -> list[str]:
    """The files that sections need, each once."""
    return list(dict.fromkeys(name for section in sections for name in getattr(section, what)))


def _read(names: Sequence[str], folder: Path) -> Iterator[str]:
    for name in names:
        yield inline((folder / name).read_text(encoding="utf-8"))
