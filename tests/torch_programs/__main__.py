"""Run programs by name, or all, and print a line of JSON for each: what is wrong with it."""

from __future__ import annotations

import argparse
import json
import sys
import time
import traceback

from torch_programs import distributed  # noqa: F401  its programs join the list
from torch_programs.compare import columns, differences, lies_found
from torch_programs.found import PROGRAMS
from torch_programs.running import run
from torch_programs.truth import NotedSimulation


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m torch_programs", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="PROGRAM", help=", ".join(PROGRAMS))
    parser.add_argument("--source", nargs="+", default=[], metavar="NAME[:LEVEL]", help='as in "operators:launch"')
    parser.add_argument(
        "--beside", action="store_true", help="torch's profiler runs, too, and tells whole paths of operators"
    )
    parser.add_argument("--lie", action="store_true", help="falsify what the programs noted: each lie is to be found")
    options = parser.parse_args()
    sources = {name: level for name, _, level in (source.partition(":") for source in options.source)}
    filled = columns(list(sources))
    simulation = NotedSimulation()
    failed = 0
    for name in options.names or PROGRAMS:
        began = time.monotonic()
        launches = 0
        try:
            ran = run(simulation, PROGRAMS[name], options.beside, sources=sources or None)
            launches = len(ran.launches)
            said = differences(ran, filled) + (lies_found(ran, filled) if options.lie else [])
        except Exception:
            said = traceback.format_exc().splitlines()
        failed += bool(said)
        seconds = round(time.monotonic() - began, 2)
        print(json.dumps({"program": name, "launches": launches, "seconds": seconds, "wrong": said}), flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
