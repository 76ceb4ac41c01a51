"""Convert a saved run or a torch.profiler trace to another tool's format."""

from __future__ import annotations

import argparse

from cuptiprof.cli.output import progress_bar
from cuptiprof.io.files import check_file
from cuptiprof.io.formats import FORMATS, find_format
from cuptiprof.io.runs import open_run

SUMMARY = "Convert a saved run or a torch.profiler trace to another tool's format."
EXAMPLES = "examples:\n  cuptiprof export run.cuptiprof -o trace.json.gz"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("path", metavar="RUN_OR_TRACE")
    parser.add_argument("-o", "--output", metavar="FILE", required=True, help="the suffix chooses the format")
    parser.add_argument("-f", "--force-overwrite", action="store_true", help="replace an existing file")
    parser.add_argument("--format", choices=[f.name for f in FORMATS], help="in place of the suffix")


def main(arguments: argparse.Namespace) -> int:
    find_format(arguments.output, arguments.format)
    check_file(arguments.output, overwrite=arguments.force_overwrite)
    with progress_bar(f"reading {arguments.path}") as progress:
        result = open_run(arguments.path, progress)
    with progress_bar(f"writing {arguments.output}") as progress:
        result.export(arguments.output, format=arguments.format, overwrite=arguments.force_overwrite, progress=progress)
    return 0
