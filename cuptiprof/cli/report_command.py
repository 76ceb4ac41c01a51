"""Print reports of a saved run or a torch.profiler trace."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from typing import Any

from cuptiprof.cli.argument_types import nanoseconds
from cuptiprof.cli.output import add_format_arguments, print_reports, put_text, resolve_log_file, wants_page
from cuptiprof.cli.standard_streams import progress_bar
from cuptiprof.data.result import Result
from cuptiprof.errors import ResultError
from cuptiprof.io.rank_folder import open_ranks
from cuptiprof.page import PageRun, make_page
from cuptiprof.report import VIEWS, Report
from cuptiprof.report.views.by_rank import rank_of
from cuptiprof.text.nearest import nearest

SUMMARY = "Print reports of a saved run or a torch.profiler trace."
EXAMPLES = (
    "examples:\n  cuptiprof report run.cuptiprof\n  cuptiprof report run.cuptiprof --format html -o run.html\n  cuptiprof report trace.json.gz --view regions\n"
    "  cuptiprof report run.cuptiprof --view summary --format json"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_path_arguments(parser)
    add_format_arguments(parser, pages=True)
    parser.add_argument("--lines", action="append", metavar="PATTERN",
                        help="for --view lines: functions of a file (train.py), of a line (train.py:42), or by name (Model.forward)")  # fmt: skip
    parser.add_argument("--host-samples", metavar="FILE",
                        help="what perf script printed, of a perf record -k CLOCK_MONOTONIC beside the run: for --view host, and the timeline of a page")  # fmt: skip
    parser.add_argument(
        "--bin", type=nanoseconds, metavar="TIME", help="for --view samples: how long a row is (20us, 1ms)"
    )


def add_path_arguments(parser: argparse.ArgumentParser) -> None:
    """What is opened, and which kernels of it."""
    parser.add_argument(
        "path",
        metavar="RUN_OR_TRACE",
        help="a saved run, a torch.profiler trace, a database of nsys or nvprof, or a folder of them",
    )
    parser.add_argument("-k", "--kernel-name", dest="kernels", metavar="PATTERN", help='glob or "regex:..."')


def opened(arguments: argparse.Namespace) -> list[Result]:
    """The runs that were asked for, by rank."""
    results = open_ranks(arguments.path, lambda file: progress_bar(f"reading {file}"))
    return [_filtered(result, arguments.kernels) if arguments.kernels else result for result in results]


def _with_samples(arguments: argparse.Namespace) -> list[Result]:
    runs = opened(arguments)
    return [run.with_host_samples(arguments.host_samples) for run in runs] if arguments.host_samples else runs


def _filtered(result: Result, pattern: str) -> Result:
    """The kernels of that name; of none, the note says which names were nearest."""
    names = sorted(set(result.kernels["name"]))
    result = result.filter(pattern)
    if names and not len(result.kernels):
        near = ", ".join(nearest(pattern, names, 5)) or "(none)"
        said = f"no kernel matched {pattern!r}; the nearest names were: {near}"
        result.metadata["note"] = "; ".join(filter(None, [said, result.metadata.get("note")]))
    return result


def _reports(
    results: list[Result], views: Sequence[str], options: dict[str, Any], of_view: dict[str, dict[str, Any]]
) -> list[Report]:
    """Run by run; what the views that can say of several ranks is one report, among those of the first. `of_view`: options of one view."""
    out = []
    for i, result in enumerate(results):
        for view in views:
            if not VIEWS[view].of_ranks:
                out.append(result.report(view, **options, **of_view.get(view, {})))
            elif i == 0:
                out.append(result.report(view, ranks=results[1:], **options))
    return out


def _called(path: str, run: Result) -> str:
    name = os.path.basename(os.path.normpath(path))
    return f"{name}, rank {rank_of(run)}" if "rank" in run.metadata and os.path.isdir(path) and rank_of(run) else name


def main(arguments: argparse.Namespace) -> int:
    resolve_log_file(arguments)
    if wants_page(arguments):
        if arguments.view:
            raise ResultError("a page has all views", hint="leave --view out, or choose another --format")
        put_text(
            make_page([PageRun(_called(arguments.path, run), run) for run in _with_samples(arguments)]),
            arguments.log_file or "%1",
        )
        return 0
    options = {"units": arguments.units, "demangle": arguments.demangling == "on", "limit": arguments.limit}
    of_view = {
        "lines": {"lines": arguments.lines},
        "samples": {"bin_ns": arguments.bin},
    }
    asked = {"lines": arguments.lines, "samples": arguments.bin, "host": arguments.host_samples}
    views = arguments.view or (next((view for view, of in asked.items() if of), "overview"),)
    print_reports(_reports(_with_samples(arguments), views, options, of_view), arguments)
    return 0
