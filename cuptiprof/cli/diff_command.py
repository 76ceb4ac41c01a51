"""Compare two saved runs or traces: what takes longer, what is new, what is gone.

Exit status: 0 all is well, 1 something is slower than ``--fail-if-slower`` allows, or nothing could be judged, 2 a run cannot be opened.
"""

from __future__ import annotations

import argparse

from cuptiprof.analysis.comparison.run_diff import RunDiff, diff_runs
from cuptiprof.analysis.comparison.work_groups import GROUPS
from cuptiprof.cli.argument_types import count, percent
from cuptiprof.cli.bench_sweep import say
from cuptiprof.cli.output import add_format_arguments, print_reports, put_text, resolve_log_file, wants_page
from cuptiprof.cli.standard_streams import progress_bar
from cuptiprof.data.result import Result
from cuptiprof.errors import ResultError
from cuptiprof.io.rank_folder import open_ranks
from cuptiprof.page import PageRun, make_page
from cuptiprof.report import make_diff_report
from cuptiprof.report.views.by_rank import rank_of
from cuptiprof.stats.verdict import THRESHOLD

SUMMARY = "Compare two saved runs or traces: what takes longer, what is new, what is gone."
EXAMPLES = """examples:
  cuptiprof diff before.cuptiprof after.cuptiprof
  cuptiprof diff main.json.gz new.json.gz --by operator --limit 10
  cuptiprof diff main.json.gz new.json.gz --fail-if-slower 5%      (exit status 1 if anything is, for CI)"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("base", metavar="BASE", help="a saved run or a trace, or a folder with one of each rank")
    parser.add_argument("new", metavar="NEW", help="another, which is compared with it")
    parser.add_argument("--rank", type=count, metavar="N", help="which rank of folders (default the first)")
    parser.add_argument("--by", choices=GROUPS, default="kernel", help="what the rows are (default kernel)")
    parser.add_argument("--short-names", action="store_true", help="kernels that differ by template arguments, parameters or addresses only are one")  # fmt: skip
    against = parser.add_argument_group("comparing")
    against.add_argument("--threshold", type=percent, default=THRESHOLD, metavar="P%%", help=f"difference that does not matter (default {100 * THRESHOLD:g}%%)")  # fmt: skip
    against.add_argument("--fail-if-slower", type=percent, metavar="P%%", help="exit status 1 if a row, or a step, is SLOWER and its whole interval is at or above P%%")  # fmt: skip
    against.add_argument("--across-chips", action="store_true", help="judge times of different GPUs too, and of simulated beside real ones")  # fmt: skip
    add_format_arguments(parser, views=False, pages=True)


def main(arguments: argparse.Namespace) -> int:
    a = arguments
    resolve_log_file(a)
    try:
        (base, name), (new, new_name) = _opened(a.base, a.rank), _opened(a.new, a.rank)
    except ResultError as e:
        say(str(e))
        return 2
    diff = diff_runs(
        base,
        new,
        a.by,
        short_names=a.short_names,
        threshold=a.threshold,
        across_chips=a.across_chips,
        demangle=a.demangling == "on",
    )
    report = make_diff_report(diff, base, new, units=a.units, limit=a.limit, names=(name, new_name))
    if wants_page(a):
        put_text(make_page([PageRun(name, base), PageRun(new_name, new)], [report]), a.log_file or "%1")
    else:
        print_reports([report], a)
    return int(a.fail_if_slower is not None and _fails(diff, a.fail_if_slower))


def _opened(path: str, rank: int | None) -> tuple[Result, str]:
    """The run, or that of a rank, and what it is called."""
    runs = open_ranks(path, lambda file: progress_bar(f"reading {file}"))
    if len(runs) == 1 and rank is None:
        return runs[0], path
    found = runs[0] if rank is None else next((run for run in runs if rank_of(run) == rank), None)
    if found is None:
        raise ResultError(
            f"{path}: there is no rank {rank}", hint=f"there are {', '.join(str(rank_of(run)) for run in runs[:20])}"
        )
    return found, f"{path} (rank {rank_of(found)})"


def _fails(diff: RunDiff, limit: float) -> bool:
    for name, verdict in (slower := diff.slower(limit)):
        say(f"slower by {100 * limit:g} % or more: {name}: {verdict.reason}")
    # A gate that compares nothing would always be open.
    if not diff.all_verdicts():
        say(f"--fail-if-slower: nothing could be judged{f': {diff.incomparable}' if diff.incomparable else ''}")
        return True
    return bool(slower)
