"""Say what works here, what does not, why, and what to do.

Exits 0 if tracing can work, 1 if not. Never crashes, whatever is installed.
"""

from __future__ import annotations

import argparse
import json

SUMMARY = "Say what works here, what does not, why, and what to do."
EXAMPLES = "examples:\n  cuptiprof doctor\n  cuptiprof doctor --json\n  cuptiprof doctor --device sim"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="machine-readable")
    parser.add_argument("--device", choices=("cuda", "sim"), default="cuda", help="what to examine")


def main(arguments: argparse.Namespace) -> int:
    from cuptiprof.doctor import diagnose
    from cuptiprof.doctor.printed import diagnosis_text

    report = diagnose(arguments.device)
    print(json.dumps(report.data(), indent=1) if arguments.json else diagnosis_text(report))
    return 0 if report.can_trace else 1
