"""What the head of the page says of a run: where it comes from, and what was lost."""

from __future__ import annotations

from typing import Any

from cuptiprof.data.result import Result
from cuptiprof.page.packed import page_text
from cuptiprof.report import make_report

_FACTS = (
    ("driver_version", "Driver"),
    ("cupti_version", "CUPTI"),
    ("cuptiprof_version", "cuptiprof"),
    ("host", "Host"),
)


def run_facts(name: str, result: Result) -> dict[str, Any]:
    """Texts for the template: name, whether simulated, lines of the report's header, facts, losses with what each means."""
    overview = make_report(result, "overview")
    metadata = result.metadata
    lost = [(n, f"{count:,}", result.losses.DOCS[n]) for n, count in result.losses.items() if count]
    return {
        "name": page_text(name),
        "simulated": result.simulated,
        "lines": [page_text(line) for line in overview.header],
        "facts": [(title, page_text(str(metadata[key]))) for key, title in _FACTS if metadata.get(key)],
        "losses_line": overview.losses_line,
        "losses": lost,
    }
