"""Run kernels whose counters are known and check what is measured.

Exits 0 if every number is right, 1 if one is wrong, 2 if something could not be measured.
"""

from __future__ import annotations

import argparse
import sys

from cuptiprof.errors import CuptiprofError
from cuptiprof.report.render import FORMATS, render_for

SUMMARY = "Run kernels whose counters are known and check what is measured."
EXAMPLES = (
    "examples:\n  cuptiprof verify\n  cuptiprof verify --list\n  cuptiprof verify --probe fma-f32 --format json\n"
    "  cuptiprof verify --device sim"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--probe", action="append", metavar="NAME", help="only this one; may be given several times")
    parser.add_argument("--device", help="cuda (default), sim or sim:CHIP")
    parser.add_argument("--format", choices=FORMATS, help="default: rich in a terminal, else text")
    parser.add_argument("--list", action="store_true", help="name the probes and exit")


def main(arguments: argparse.Namespace) -> int:
    from cuptiprof import verify

    try:
        probes = verify.choose(arguments.probe)
        if arguments.list:
            sys.stdout.write(render_for(verify.list_report(probes), sys.stdout, arguments.format))
            return 0
        machine = verify.open_machine(arguments.device)
        progress = (lambda name: print(f"{name} ...", file=sys.stderr)) if sys.stderr.isatty() else None
        checks = verify.run_probes(machine, probes, progress)
    except CuptiprofError as e:
        print(f"cuptiprof: {e}", file=sys.stderr)
        return 2
    sys.stdout.write(render_for(verify.make_report(machine.facts, checks), sys.stdout, arguments.format))
    return verify.exit_status(checks)
