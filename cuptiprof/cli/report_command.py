"""Print reports of a saved run or a torch.profiler trace."""

from __future__ import annotations

import argparse

from cuptiprof.cli.output import add_format_arguments, print_reports, progress_bar, resolve_log_file
from cuptiprof.io.runs import open_run

SUMMARY = "Print reports of a saved run or a torch.profiler trace."
EXAMPLES = (
    "examples:\n  cuptiprof report run.cuptiprof\n  cuptiprof report trace.json.gz --view regions\n"
    "  cuptiprof report run.cuptiprof --view summary --format json"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("path", metavar="RUN_OR_TRACE", help="a saved run, or a torch.profiler trace (.json, .json.gz)")
    parser.add_argument("-k", "--kernel-name", dest="kernels", metavar="PATTERN", help='glob or "regex:..."')
    add_format_arguments(parser)


def main(arguments: argparse.Namespace) -> int:
    resolve_log_file(arguments)
    with progress_bar(f"reading {arguments.path}") as progress:
        result = open_run(arguments.path, progress)
    if arguments.kernels:
        result = result.filter(arguments.kernels)
    options = {"units": arguments.units, "demangle": arguments.demangling == "on", "limit": arguments.limit}
    print_reports([result.report(v, **options) for v in arguments.view or ("summary",)], arguments)
    return 0
