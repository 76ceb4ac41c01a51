"""Say what to try to make a run faster: where, and how much time it can save at most."""

from __future__ import annotations

import argparse

from cuptiprof.cli.output import add_format_arguments, print_reports, resolve_log_file
from cuptiprof.cli.report_command import add_path_arguments, opened

SUMMARY = "Say what to try to make a run faster: where, and how much time it can save at most."
EXAMPLES = (
    "examples:\n  cuptiprof advise run.cuptiprof\n  cuptiprof advise trace.json.gz --limit 3\n"
    "  cuptiprof advise run.cuptiprof --format json"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_path_arguments(parser)
    add_format_arguments(parser, views=False)


def main(arguments: argparse.Namespace) -> int:
    resolve_log_file(arguments)
    options = {"units": arguments.units, "demangle": arguments.demangling == "on", "limit": arguments.limit}
    print_reports([result.report("advise", **options) for result in opened(arguments)], arguments)
    return 0
