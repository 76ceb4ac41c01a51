"""Print reports of a saved run or a torch.profiler trace."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from cuptiprof.cli.argument_types import nanoseconds
from cuptiprof.cli.output import add_format_arguments, print_reports, progress_bar, resolve_log_file
from cuptiprof.data.result import Result
from cuptiprof.io.rank_folder import open_ranks
from cuptiprof.report import VIEWS, Report
from cuptiprof.text.nearest import nearest

SUMMARY = "Print reports of a saved run or a torch.profiler trace."
EXAMPLES = (
    "examples:\n  cuptiprof report run.cuptiprof\n  cuptiprof report trace.json.gz --view regions\n"
    "  cuptiprof report run.cuptiprof --view summary --format json"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_path_arguments(parser)
    add_format_arguments(parser)
    parser.add_argument("--lines", action="append", metavar="PATTERN",
                        help="for --view lines: functions of a file (train.py), of a line (train.py:42), or by name (Model.forward)")  # fmt: skip
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


def main(arguments: argparse.Namespace) -> int:
    resolve_log_file(arguments)
    options = {"units": arguments.units, "demangle": arguments.demangling == "on", "limit": arguments.limit}
    of_view = {"lines": {"lines": arguments.lines}, "samples": {"bin_ns": arguments.bin}}
    views = arguments.view or ("lines" if arguments.lines else "samples" if arguments.bin else "overview",)
    print_reports(_reports(opened(arguments), views, options, of_view), arguments)
    return 0
