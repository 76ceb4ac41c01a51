"""Profile an unmodified Python script.

The script's output, exit status, exceptions and signals pass through; the report goes to stderr, like nvprof's. The profile
is saved even when the script fails or is interrupted.
"""

from __future__ import annotations

import argparse
import sys
from contextlib import nullcontext

from cuptiprof.cli import application_runs
from cuptiprof.cli.argument_types import seconds
from cuptiprof.cli.child_processes import ChildProcesses, children_seconds, results_of, unprofiled_children
from cuptiprof.cli.destination import Destination, destination
from cuptiprof.cli.metric_arguments import add_counter_arguments, counter_options, take_short_option
from cuptiprof.cli.output import add_format_arguments, print_reports, resolve_log_file
from cuptiprof.cli.run_session import RunSession
from cuptiprof.cli.script import finishing, run_script
from cuptiprof.cli.session_arguments import add_kernel_arguments, add_session_arguments, chosen_views
from cuptiprof.cli.standard_streams import usable
from cuptiprof.cli.what_to_run import find_script
from cuptiprof.data.result import Result
from cuptiprof.errors import CuptiprofError
from cuptiprof.sim.pytorch.cuda_names import HINT

SUMMARY = "Profile an unmodified Python script."
EXAMPLES = """examples:
  cuptiprof run train.py --epochs 1
  cuptiprof run --device sim -m mypackage.train
  cuptiprof run -o run.cuptiprof --view regions train.py
  cuptiprof run --live train.py
  cuptiprof run --metrics-port 9464 train.py           (Prometheus; its dashboard: cuptiprof dashboard)
  cuptiprof run --kernels "::gemm:1" train.py          (nvprof: first run of each kernel with gemm in its name)
  cuptiprof run -k regex:gemm -s 10 -c 20 train.py     (ncu: skip 10 matching launches, keep 20)
  cuptiprof run --print-gpu-trace --csv --log-file %p.csv train.py
  cuptiprof run --metrics ipc,achieved_occupancy --kernels "::gemm:1" train.py
  cuptiprof run --set basic --replay-mode application --explain train.py
  torchrun --nproc-per-node 8 -m cuptiprof run -o job train.py    (mpirun, srun: each rank saves its run in the folder job)
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-o", "--export-profile", "--output", dest="output", metavar="PATH",
                        help="save the run (a folder), or what the suffix says (.json.gz: a Chrome trace; others: cuptiprof export --help); %%p %%h %%q{ENV} expand; in a rank of a job: the folder of its runs")  # fmt: skip
    parser.add_argument("-f", "--force-overwrite", action="store_true", help="replace an existing run or file")
    parser.add_argument("-q", "--quiet", action="store_true", help="print no report")
    add_session_arguments(parser)
    parser.add_argument("--profile-child-processes", action="store_true",
                        help="nvprof's: Python processes that the script starts, too (not forks); -o is then a folder of runs")  # fmt: skip
    parser.add_argument("-t", "--timeout", type=seconds, metavar="SECONDS", help="collect for at most so long")
    parser.add_argument("--live", action="store_true",
                        help="while it runs, show kernels, regions, GPU use and losses once a second, below what the program prints")  # fmt: skip
    prints = parser.add_argument_group("what to print (nvprof's names)")
    for option, view in (("--print-summary", "summary"), ("--print-gpu-trace", "gpu-trace"),
                         ("--print-gpu-traces", "gpu-trace"), ("--print-api-trace", "api-trace"),
                         ("--print-regions", "regions")):  # fmt: skip
        prints.add_argument(option, dest="view", action="append_const", const=view)
    add_kernel_arguments(parser)
    add_counter_arguments(parser)
    add_format_arguments(parser)
    parser.add_argument("-m", dest="module", action="store_true",
                        help="run a module, as python -m does; with the name of metrics: nvprof's -m, as --metrics")  # fmt: skip
    parser.add_argument(
        "script",
        metavar="script.py|module",
        help="what to run; `python script.py` and `torchrun ...` are understood, too",
    )
    its_own = parser.add_argument("args", nargs=argparse.REMAINDER, help="its arguments")
    its_own.required = False  # which argparse of Python 3.11 says they are


def main(arguments: argparse.Namespace) -> int:
    arguments = take_short_option(arguments)
    find_script(arguments)
    resolve_log_file(arguments)
    counter_options(arguments)  # raises
    children = ChildProcesses(arguments) if arguments.profile_child_processes else None
    if children is not None:
        place = children.place
    else:
        place = (
            destination(arguments.output, overwrite=arguments.force_overwrite, activities=arguments.activities)
            if arguments.output is not None
            else None
        )
    if arguments.replay_mode == "application":
        watched = arguments.live or arguments.live_remote
        if watched or arguments.metrics_port is not None or arguments.otlp_endpoint is not None:
            raise CuptiprofError(
                f"{'--live' if watched else '--metrics-port, --otlp-endpoint'} and --replay-mode application do not go together",
                hint="watch a run that counts with --replay-mode kernel, or one without counters",
            )
        plan = application_runs.plan_script_runs(arguments)
        if arguments.explain:
            sys.stderr.write(plan.text())
        result, status = application_runs.run_script_again(arguments, plan)
        return _save_and_report([result], arguments, place, status)
    session = RunSession(arguments)
    session.start()
    before = children_seconds()
    with children or nullcontext():
        ended = run_script(arguments)
    if ended.forked:
        return ended.leave()
    with finishing(ended):
        result = session.stop(quiet=arguments.quiet)
        if result.simulated and "CUDA" in ended.error and HINT not in ended.error and usable(sys.stderr):
            print(f"cuptiprof: the script needs CUDA\n  hint: {HINT}", file=sys.stderr)
        if children is None:
            results = [_with_note(result, unprofiled_children(before))]
        else:
            records = children.collect()
            results = [result, *results_of(records)]
            _with_note(result, children.note(records))
        ended.status = _save_and_report(results, arguments, place, ended.status)
        if children is not None:
            children.forget()
    return ended.leave()


def _with_note(result: Result, note: str) -> Result:
    if note:
        old = result.metadata.get("note")
        result.metadata["note"] = f"{old}; {note}" if old else note
    return result


def _save_and_report(
    results: list[Result], arguments: argparse.Namespace, place: Destination | None, status: int
) -> int:
    """Whatever can be: saved is the first. Returns the exit status, which a failure here makes 1 unless the script failed by itself."""
    is_saved = place is None or place.write_or_beside(results[0])
    try:
        _report(results, arguments)
    except CuptiprofError as e:
        if usable(sys.stderr):
            print(f"cuptiprof: {e}", file=sys.stderr)
        return status or 1
    return status if is_saved else status or 1


def _report(results: list[Result], arguments: argparse.Namespace) -> None:
    if arguments.quiet or (arguments.log_file is None and not usable(sys.stderr)):
        return
    options = {"units": arguments.units, "demangle": arguments.demangling == "on", "limit": arguments.limit}
    reports = [r.report(v, **options) for r in results for v in chosen_views(arguments)]
    print_reports(reports, arguments, default="%2")
