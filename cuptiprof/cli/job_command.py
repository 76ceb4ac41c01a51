"""Reports of a job: the runs that its ranks saved in one folder."""

from __future__ import annotations

import argparse
import sys

import cuptiprof
from cuptiprof.cli.argument_types import number_range, numbers
from cuptiprof.cli.output import add_format_arguments, print_reports, resolve_log_file
from cuptiprof.errors import ResultError
from cuptiprof.export.job_trace import export_job
from cuptiprof.io.files import check_file
from cuptiprof.job.engines import asking, open_tables
from cuptiprof.job.job_report import JOB_VIEWS, JobQuestions
from cuptiprof.job.rank_part import StepRange
from cuptiprof.text.addresses import shown_path

SUMMARY = "Reports of a job: which rank holds the others up, and by what."
EXAMPLES = """examples:
  torchrun --nproc-per-node 8 -m cuptiprof run -o job train.py
  cuptiprof job job
  cuptiprof job job --view kernels --view collectives --limit 20
  cuptiprof job job --export job.pftrace --ranks 0,3-5 --steps 10-12
  cuptiprof job job --engine spark://head:7077 --view gpus --csv"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "folder",
        metavar="JOB",
        help="the folder, or the address (s3://...), that was given to run -o, or to Result.save_rank",
    )
    parser.add_argument(
        "--view",
        action="append",
        choices=list(JOB_VIEWS),
        help="which report (default ranks); may be given several times",
    )
    parser.add_argument(
        "--engine", default="duckdb", metavar="ENGINE", help="duckdb (default), spark, or spark://HOST:PORT"
    )
    parser.add_argument(
        "--memory", metavar="SIZE", help="of DuckDB, beyond which it goes on with temporary files (4GB; default 80 %% of the machine's)"
    )  # fmt: skip
    trace = parser.add_argument_group("one trace of several ranks, by one clock")
    trace.add_argument(
        "--export", metavar="FILE", help="write it there, for ui.perfetto.dev: .pftrace, .json, .json.gz"
    )
    trace.add_argument(
        "--ranks", type=numbers, metavar="LIST", help="which, such as 0,3-5 (default: all whose clocks are aligned)"
    )
    trace.add_argument("--steps", type=number_range, metavar="RANGE", help="which steps, such as 10-12 (default: all)")
    trace.add_argument("-f", "--force-overwrite", action="store_true", help="replace FILE")
    add_format_arguments(parser, views=False)


def main(arguments: argparse.Namespace) -> int:
    resolve_log_file(arguments)
    if arguments.export is None and (arguments.ranks or arguments.steps or arguments.force_overwrite):
        raise ResultError("--ranks, --steps and -f are of --export", hint="--export FILE.pftrace")
    if arguments.export is not None:
        check_file(arguments.export, overwrite=arguments.force_overwrite)
    job = cuptiprof.open_job(arguments.folder)
    questions = JobQuestions(job, open_tables(job, arguments.engine, memory=arguments.memory))
    if arguments.export is not None:
        with asking():
            aligned = questions.aligned()
        steps = None if arguments.steps is None else StepRange(*arguments.steps)
        done = export_job(
            job, aligned, arguments.export, ranks=arguments.ranks, steps=steps, overwrite=arguments.force_overwrite
        )
        print(f"{shown_path(arguments.export)}: {done}", file=sys.stderr)
        if not arguments.view:
            return 0
    options = {"units": arguments.units, "limit": arguments.limit, "demangle": arguments.demangling == "on"}
    print_reports([questions.report(view, **options) for view in arguments.view or ("ranks",)], arguments)
    return 0
