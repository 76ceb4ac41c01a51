"""What ``import cuptiprof`` takes beyond ``import numpy``: whole processes, in turn. Bar: 60 ms."""

from __future__ import annotations

import subprocess
import sys
import tempfile

from benchmarks.common import arguments, finish, in_turn, summary

MS = 1e6


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--rounds", type=int, default=40)
    options = parser.parse_args()

    def run(code: str) -> None:
        subprocess.run([sys.executable, "-c", code], check=True, cwd=tempfile.gettempdir())

    cases = {"numpy": lambda: run("import numpy"), "cuptiprof": lambda: run("import numpy, cuptiprof")}
    found = in_turn(cases, options.rounds, strategy="wall")
    difference = found["cuptiprof"].samples - found["numpy"].samples  # of the same round
    finish(
        {
            "benchmark": "import_time",
            "unit": "ms",
            "processes": {m.name: summary(m.samples, MS) for m in found.measurements},
            "beyond_numpy (bar 60)": summary(difference, MS),
        },
        options.out,
    )


if __name__ == "__main__":
    main()
