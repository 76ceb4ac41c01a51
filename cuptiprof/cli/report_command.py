"""Print reports of a saved run or a torch.profiler trace."""

from __future__ import annotations

import argparse
import os

from cuptiprof.cli.output import add_format_arguments, print_reports, progress_bar, resolve_log_file
from cuptiprof.data.result import Result
from cuptiprof.io.run_folder import RUN_FILE, runs_in
from cuptiprof.io.runs import open_run
from cuptiprof.text.nearest import nearest

SUMMARY = "Print reports of a saved run or a torch.profiler trace."
EXAMPLES = (
    "examples:\n  cuptiprof report run.cuptiprof\n  cuptiprof report trace.json.gz --view regions\n"
    "  cuptiprof report run.cuptiprof --view summary --format json"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("path", metavar="RUN_OR_TRACE", help="a saved run, a folder of them, or a torch.profiler trace")
    parser.add_argument("-k", "--kernel-name", dest="kernels", metavar="PATTERN", help='glob or "regex:..."')
    add_format_arguments(parser)
    parser.add_argument("--lines", action="append", metavar="PATTERN",
                        help="for --view lines: functions of a file (train.py), of a line (train.py:42), or by name (Model.forward)")  # fmt: skip


def _filtered(result: Result, pattern: str) -> Result:
    """The kernels of that name; of none, the note says which names were nearest."""
    names = sorted(set(result.kernels["name"]))
    result = result.filter(pattern)
    if names and not len(result.kernels):
        near = ", ".join(nearest(pattern, names, 5)) or "(none)"
        result.metadata["note"] = f"no kernel matched {pattern!r}; the nearest names were: {near}"
    return result


def _runs(path: str) -> list[str]:
    """Itself, or of a folder of runs (``run --profile-child-processes``) each."""
    if os.path.exists(os.path.join(path, RUN_FILE)):
        return [path]
    return [str(run) for run in runs_in(path)] or [path]


def main(arguments: argparse.Namespace) -> int:
    resolve_log_file(arguments)
    options = {"units": arguments.units, "demangle": arguments.demangling == "on", "limit": arguments.limit}
    reports = []
    for path in _runs(arguments.path):
        with progress_bar(f"reading {path}") as progress:
            result = open_run(path, progress)
        if arguments.kernels:
            result = _filtered(result, arguments.kernels)
        for view in arguments.view or ("lines" if arguments.lines else "overview",):
            of_lines = {"lines": arguments.lines} if view == "lines" else {}
            reports.append(result.report(view, **options, **of_lines))
    print_reports(reports, arguments)
    return 0
