"""Run programs by name, or all, and print a line of JSON for each: what is wrong with it."""

from __future__ import annotations

import argparse
import json
import sys
import time
import traceback

from torch_programs.programs import PROGRAMS
from torch_programs.running import differences, lies_found, run
from torch_programs.truth import NotedSimulation


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m torch_programs", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="PROGRAM", help=", ".join(PROGRAMS))
    parser.add_argument("--lie", action="store_true", help="falsify what the programs noted: each lie is to be found")
    options = parser.parse_args()
    simulation = NotedSimulation()
    failed = 0
    for name in options.names or PROGRAMS:
        began = time.monotonic()
        launches = 0
        try:
            result, truth = run(simulation, PROGRAMS[name])
            launches = len(truth.rows)
            said = lies_found(result, truth) if options.lie else differences(result, truth)
        except Exception:
            said = traceback.format_exc().splitlines()
        failed += bool(said)
        seconds = round(time.monotonic() - began, 2)
        print(json.dumps({"program": name, "launches": launches, "seconds": seconds, "wrong": said}), flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
