"""Convert a saved run or a torch.profiler trace to another tool's format."""

from __future__ import annotations

import argparse

from cuptiprof.analysis.trees.flame import STACKS_BY
from cuptiprof.cli.standard_streams import progress_bar
from cuptiprof.data.tables import schema
from cuptiprof.errors import ResultError
from cuptiprof.export.formats import FORMATS, check_options, find_format
from cuptiprof.io.files import check_file
from cuptiprof.io.runs import open_run
from cuptiprof.text.addresses import shown_path

SUMMARY = "Convert a saved run or a torch.profiler trace to another tool's format."
EXAMPLES = (
    "examples:\n  cuptiprof export run.cuptiprof -o trace.json.gz\n"
    "  cuptiprof export run.cuptiprof -o flame.speedscope.json --by module\n"
    "  cuptiprof export run.cuptiprof -o kernels.parquet\n"
    "  cuptiprof export run.cuptiprof -o copies.csv --table memcpys\n"
    "\nformats:\n" + "\n".join(f"  {f.name:16} {', '.join(f.suffixes):37} {f.doc}" for f in FORMATS)
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("path", metavar="RUN_OR_TRACE")
    parser.add_argument("-o", "--output", metavar="FILE", required=True, help="the suffix chooses the format")
    parser.add_argument("-f", "--force-overwrite", action="store_true", help="replace an existing file")
    parser.add_argument("--format", choices=[f.name for f in FORMATS], help="in place of the suffix")
    parser.add_argument(
        "--by",
        choices=STACKS_BY,
        help="of flame graphs and pprof: what stacks are of (default: Python's where there are any, else regions)",
    )
    parser.add_argument(
        "--table",
        metavar="TABLE",
        help=f"of .parquet, .arrow and .csv: {', '.join(schema())} (default: kernels)",
    )
    parser.add_argument(
        "--host-samples",
        metavar="FILE",
        help="of html, chrome and perfetto: what perf script printed, of a perf record -k CLOCK_MONOTONIC beside the run",
    )


def main(arguments: argparse.Namespace) -> int:
    chosen = find_format(arguments.output, arguments.format)
    check_options(chosen, arguments.by, arguments.table)
    if arguments.host_samples and not chosen.host_samples:
        having = ", ".join(f.name for f in FORMATS if f.host_samples)
        raise ResultError(f"{chosen.name} has no place for samples of the host", hint=f"formats that have: {having}")
    check_file(arguments.output, overwrite=arguments.force_overwrite)
    with progress_bar(f"reading {shown_path(arguments.path)}") as progress:
        result = open_run(arguments.path, progress)
    if arguments.host_samples:
        result = result.with_host_samples(arguments.host_samples)
    with progress_bar(f"writing {shown_path(arguments.output)}") as progress:
        result.export(
            arguments.output,
            format=arguments.format,
            by=arguments.by,
            table=arguments.table,
            overwrite=arguments.force_overwrite,
            progress=progress,
        )
    return 0
