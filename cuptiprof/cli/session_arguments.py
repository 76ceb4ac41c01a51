"""Options of ``run`` that say what a session collects and shows, with ncu's and nvprof's names; a notebook's ``%%cuptiprof`` has them, too."""

from __future__ import annotations

import argparse

from cuptiprof.cli.argument_types import address_and_port, count
from cuptiprof.cli.metric_arguments import counter_views
from cuptiprof.data.activities import KINDS
from cuptiprof.session.arguments import KEEP
from cuptiprof.session.sources import LEVELS


def add_session_arguments(parser: argparse.ArgumentParser) -> None:
    """Where, what and how much is collected."""
    parser.add_argument("--device", metavar="DEVICE", help="cuda (default), sim, sim:CHIP, replay:TRACE")
    parser.add_argument("--activities", metavar="LIST", help=f"comma-separated, of: {', '.join(KINDS)}")
    parser.add_argument("--sources", default="nvtx", metavar="LIST",
                        help=f"what tells whose a kernel is, beside regions and steps, comma-separated: {', '.join(LEVELS)}, with a level "
                             "as in nvtx=launch; all, none (default nvtx)")  # fmt: skip
    parser.add_argument("--profile-from-start", choices=("on", "off"), default="on",
                        help="off: only between cudaProfilerStart and cudaProfilerStop")  # fmt: skip
    parser.add_argument("--system-profiling", choices=("on", "off"), default="off",
                        help="on: read power, clocks, temperature, memory and utilisation of the GPUs and what the process uses of its "
                             "machine, every 100 ms; --view system shows them (nvprof)")  # fmt: skip
    parser.add_argument("--budget", default="256 MB", help="memory for what is kept (default 256 MB)")
    parser.add_argument("--keep", choices=KEEP, default="latest", help="what to keep when the budget is used up")
    parser.add_argument("--metrics-port", type=address_and_port, metavar="[ADDRESS:]PORT",
                        help="give what is collected to Prometheus at http://127.0.0.1:PORT/metrics, or at another address of this machine; "
                             "0: any port that is free; rank N of a machine's has PORT+N")  # fmt: skip
    parser.add_argument("--otlp-endpoint", metavar="URL",
                        help="send what is collected to a collector of OpenTelemetry, http://localhost:4318, every minute and at the end; "
                             "OTEL_METRIC_EXPORT_INTERVAL (ms) says otherwise")  # fmt: skip
    parser.add_argument("--live-remote", action="store_true",
                        help="let `cuptiprof top` show in another terminal what is collected")  # fmt: skip


def add_kernel_arguments(parser: argparse.ArgumentParser) -> None:
    """Which kernels."""
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
    which.add_argument("--line-include", action="append", metavar="PATTERN",
                       help="what is launched from a file (train.py), a line of it (train.py:42) or a function (Model.forward)")  # fmt: skip
    which.add_argument("--module-include", action="append", metavar="PATTERN",
                       help="what is launched in a module of PyTorch (layers.3.attn, Net.head, *.attn)")  # fmt: skip
    which.add_argument("--nvtx-include", action="append", metavar="EXPR", help="regions and NVTX ranges to keep")
    which.add_argument("--nvtx-exclude", action="append", metavar="EXPR", help="regions and NVTX ranges to leave out")


def chosen_views(arguments: argparse.Namespace) -> list[str]:
    """The views that were asked for, each once; else those that fit the counters; else the overview."""
    return list(dict.fromkeys(arguments.view or counter_views(arguments) or _further(arguments)))


def _further(arguments: argparse.Namespace) -> list[str]:
    return ["overview", *(["system"] if arguments.system_profiling == "on" else [])]
