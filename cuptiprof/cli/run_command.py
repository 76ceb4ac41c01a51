"""Profile an unmodified Python script.

The script's output, exit status, exceptions and signals pass through; the report goes to stderr, like nvprof's. The profile
is saved even when the script fails or is interrupted.
"""

from __future__ import annotations

import argparse
import sys
import threading
import warnings
from typing import Any

import cuptiprof
from cuptiprof.cli import application_runs
from cuptiprof.cli.argument_types import count, seconds
from cuptiprof.cli.destination import Destination, destination
from cuptiprof.cli.metric_arguments import add_counter_arguments, counter_options, counter_views, take_short_option
from cuptiprof.cli.output import add_format_arguments, print_reports, resolve_log_file, usable
from cuptiprof.cli.script import finishing, run_script
from cuptiprof.cli.what_to_run import find_script
from cuptiprof.counters.live import CounterWarning
from cuptiprof.data.activities import KINDS
from cuptiprof.data.result import Result
from cuptiprof.errors import CuptiprofError, FilterError
from cuptiprof.session.arguments import KEEP
from cuptiprof.session.assemble import DepartedWarning, EmptySelectionWarning

SUMMARY = "Profile an unmodified Python script."
EXAMPLES = """examples:
  cuptiprof run train.py --epochs 1
  cuptiprof run --device sim -m mypackage.train
  cuptiprof run -o run.cuptiprof --view regions train.py
  cuptiprof run --kernels "::gemm:1" train.py          (nvprof: first run of each kernel with gemm in its name)
  cuptiprof run -k regex:gemm -s 10 -c 20 train.py     (ncu: skip 10 matching launches, keep 20)
  cuptiprof run --print-gpu-trace --csv --log-file %p.csv train.py
  cuptiprof run --metrics ipc,achieved_occupancy --kernels "::gemm:1" train.py
  cuptiprof run --set basic --replay-mode application --explain train.py
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-o", "--export-profile", "--output", dest="output", metavar="PATH",
                        help="save the run (a folder), or with .json/.json.gz a Chrome trace; %%p %%h %%q{ENV} expand")  # fmt: skip
    parser.add_argument("-f", "--force-overwrite", action="store_true", help="replace an existing run or file")
    parser.add_argument("-q", "--quiet", action="store_true", help="print no report")
    parser.add_argument("--device", metavar="DEVICE", help="cuda (default), sim, sim:CHIP, replay:TRACE")
    parser.add_argument("--activities", metavar="LIST", help=f"comma-separated, of: {', '.join(KINDS)}")
    parser.add_argument("--profile-from-start", choices=("on", "off"), default="on",
                        help="off: only between cudaProfilerStart and cudaProfilerStop")  # fmt: skip
    parser.add_argument("-t", "--timeout", type=seconds, metavar="SECONDS", help="collect for at most so long")
    parser.add_argument("--budget", default="256 MB", help="memory for what is kept (default 256 MB)")
    parser.add_argument("--keep", choices=KEEP, default="latest", help="what to keep when the budget is used up")
    prints = parser.add_argument_group("what to print (nvprof's names)")
    for option, view in (("--print-summary", "summary"), ("--print-gpu-trace", "gpu-trace"),
                         ("--print-gpu-traces", "gpu-trace"), ("--print-api-trace", "api-trace"),
                         ("--print-regions", "regions")):  # fmt: skip
        prints.add_argument(option, dest="view", action="append_const", const=view)
    which = parser.add_argument_group("which kernels (nvprof's and ncu's options)")
    which.add_argument(
        "--kernels",
        action="append",
        metavar="SPEC",
        help="nvprof: a regex, or context:stream:name:invocation",
    )
    which.add_argument("-k", "--kernel-name", action="append", metavar="NAME", help="ncu: exact name, or regex:...")
    which.add_argument("--kernel-name-base", choices=("function", "demangled", "mangled"), default="function")
    which.add_argument("--kernel-id", action="append", metavar="ID", help="ncu: context:stream:[regex:]name:invocation")
    which.add_argument("-s", "--launch-skip", type=count, default=0, metavar="N", help="skip N matching launches")
    which.add_argument("-c", "--launch-count", type=count, metavar="N", help="keep at most N matching launches")
    which.add_argument(
        "--launch-skip-before-match", type=count, default=0, metavar="N", help="skip N launches of any kind"
    )
    which.add_argument("--filter-mode", choices=("global", "per-gpu", "per-launch-config"), default="global")
    which.add_argument("--devices", metavar="LIST", help="device ordinals, comma-separated")
    which.add_argument("--nvtx-include", action="append", metavar="EXPR", help="regions and NVTX ranges to keep")
    which.add_argument("--nvtx-exclude", action="append", metavar="EXPR", help="regions and NVTX ranges to leave out")
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
    place = destination(arguments.output, overwrite=arguments.force_overwrite) if arguments.output is not None else None
    resolve_log_file(arguments)
    counters = counter_options(arguments)
    if arguments.replay_mode == "application":
        plan = application_runs.plan_script_runs(arguments)
        if arguments.explain:
            sys.stderr.write(plan.text())
        result, status = application_runs.run_script_again(arguments, plan)
        return _save_and_report(result, arguments, place, status)
    prof = cuptiprof.profile(
        device=arguments.device,
        activities=arguments.activities.split(",") if arguments.activities else None,
        kernels=_filter(arguments),
        keep=arguments.keep,
        budget=arguments.budget,
        profile_from_start=arguments.profile_from_start == "on",
        **counters,
    )
    prof.start()
    timer = None
    if arguments.timeout:
        timer = threading.Timer(arguments.timeout, _pause, [prof])
        timer.daemon = True
        timer.start()
    ended = run_script(arguments)
    if ended.forked:
        return ended.leave()
    if timer is not None:
        timer.cancel()
    with finishing(ended):
        with warnings.catch_warnings():
            for kind in (EmptySelectionWarning, *(() if arguments.quiet else (CounterWarning, DepartedWarning))):
                warnings.simplefilter("ignore", kind)  # the report's header says it
            result = prof.stop()
        ended.status = _save_and_report(result, arguments, place, ended.status)
    return ended.leave()


def _pause(prof: cuptiprof.profile) -> None:
    if prof.state == "running":
        prof.pause()


def _filter(arguments: argparse.Namespace) -> Any:
    from cuptiprof.filter.kernel_filter import KernelFilter

    a = arguments
    try:
        devices = [int(d) for d in a.devices.split(",")] if a.devices else None
    except ValueError:
        raise FilterError(f"--devices {a.devices}: not a list of numbers", hint="for example --devices 0,2") from None
    ncu = a.kernel_name or a.kernel_id or a.nvtx_include or a.nvtx_exclude
    if a.kernels and ncu:
        raise FilterError("--kernels (nvprof) and -k/--kernel-id/--nvtx-include (ncu) do not go together")
    if a.kernels and all(spec.startswith("regex:") and spec.count(":") == 1 for spec in a.kernels):
        # profile(kernels="regex:...") as it is written in Python; as a regex of nvprof's it could match nothing.
        return KernelFilter(list(a.kernels), devices=devices, skip=a.launch_skip, count=a.launch_count)
    if a.kernels:
        return KernelFilter.from_nvprof(a.kernels, devices=devices, skip=a.launch_skip, count=a.launch_count)
    if ncu or devices or a.launch_skip or a.launch_count is not None or a.launch_skip_before_match:
        return KernelFilter.from_ncu(
            kernel_name=a.kernel_name,
            kernel_id=a.kernel_id,
            base=a.kernel_name_base,
            nvtx_include=a.nvtx_include,
            nvtx_exclude=a.nvtx_exclude,
            skip=a.launch_skip,
            count=a.launch_count,
            skip_before_match=a.launch_skip_before_match,
            devices=devices,
            mode=a.filter_mode,
        )
    return None


def _save_and_report(result: Result, arguments: argparse.Namespace, place: Destination | None, status: int) -> int:
    """Whatever can be; the exit status, which a failure here makes 1 unless the script failed by itself."""
    is_saved = place is None or place.write_or_beside(result)
    try:
        _report(result, arguments)
    except CuptiprofError as e:
        if usable(sys.stderr):
            print(f"cuptiprof: {e}", file=sys.stderr)
        return status or 1
    return status if is_saved else status or 1


def _report(result: Result, arguments: argparse.Namespace) -> None:
    if arguments.quiet or (arguments.log_file is None and not usable(sys.stderr)):
        return
    views = (
        arguments.view or counter_views(arguments) or (["regions", "summary"] if len(result.regions) else ["summary"])
    )
    options = {"units": arguments.units, "demangle": arguments.demangling == "on", "limit": arguments.limit}
    print_reports([result.report(v, **options) for v in dict.fromkeys(views)], arguments, default="%2")
