"""Play a recorded training run on the simulated GPU and show whose kernels they are.

Five ResNet training steps, recorded on a V100, go through the whole collector.
"""

from __future__ import annotations

import argparse
from importlib.resources import as_file, files

import cuptiprof
from cuptiprof.cli.destination import destination
from cuptiprof.cli.output import add_format_arguments, print_reports, resolve_log_file

SUMMARY = "Play a recorded training run on the simulated GPU and show whose kernels they are."
EXAMPLES = (
    "examples:\n  cuptiprof demo\n  cuptiprof demo --view gpu-trace --limit 20\n  cuptiprof demo -o demo.cuptiprof"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-o",
        "--output",
        metavar="PATH",
        help="also save the run (a folder), or what the suffix says: cuptiprof export --help",
    )
    parser.add_argument("-f", "--force-overwrite", action="store_true", help="replace an existing run")
    parser.add_argument(
        "--speed", type=float, default=0.0, help="1: at the recorded pace; default: as fast as possible"
    )
    add_format_arguments(parser)


def main(arguments: argparse.Namespace) -> int:
    resolve_log_file(arguments)
    place = destination(arguments.output, overwrite=arguments.force_overwrite) if arguments.output is not None else None
    with (
        as_file(files("cuptiprof").joinpath("sim/traces/train-v100.json.gz")) as trace,
        cuptiprof.profile(device=f"replay:{trace}", speed=arguments.speed) as prof,
    ):
        pass
    result = prof.result()
    if place is not None:
        place.write(result)
    options = {
        "units": arguments.units,
        "demangle": arguments.demangling == "on",
        "limit": 10 if arguments.limit is None and arguments.view else arguments.limit,
    }
    print_reports([result.report(v, **options) for v in arguments.view or ("overview",)], arguments)
    return 0
