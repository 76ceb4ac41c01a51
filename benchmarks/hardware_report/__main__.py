"""docs/hardware.md out of benchmarks/results: python -m benchmarks.hardware_report [--check]

With --check nothing is written; exit 1 where the page is not what the results make it.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from benchmarks.hardware_report.capabilities import sections
from benchmarks.hardware_report.findings import Finding, findings
from benchmarks.hardware_report.page import make_page
from benchmarks.hardware_report.untrusted import read_results

ROOT = Path(__file__).resolve().parents[2]
RESULTS, PAGE = ROOT / "benchmarks" / "results", ROOT / "docs" / "hardware.md"


def generate(results: Path = RESULTS) -> str:
    """The page for a folder of results."""
    found: list[Finding] = []
    unread: dict[str, str] = {}
    for name, data in read_results(results):
        if isinstance(data, str):
            unread[name] = data
        else:
            found += findings(data)
    return make_page(sections(), found, unread)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--out", type=Path, default=PAGE)
    parser.add_argument("--check", action="store_true", help="only compare")
    options = parser.parse_args()
    page = generate(options.results)
    if options.check:
        return 0 if options.out.is_file() and options.out.read_text(encoding="utf-8") == page else 1
    options.out.write_text(page, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
