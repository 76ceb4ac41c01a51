"""What ``import cuptiprof`` takes beyond ``import numpy``: whole processes, interleaved. Bar: 60 ms."""

from __future__ import annotations

import subprocess
import sys
import time

from benchmarks.common import arguments, finish, interleaved, spread


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()

    def run(code: str) -> float:
        start = time.perf_counter()
        subprocess.run([sys.executable, "-c", code], check=True)
        return 1e3 * (time.perf_counter() - start)

    cases = {"numpy": lambda: run("import numpy"), "cuptiprof": lambda: run("import numpy, cuptiprof")}
    for case in cases.values():
        case()
    samples = interleaved(cases, options.rounds)
    difference = [b - a for a, b in zip(samples["numpy"], samples["cuptiprof"], strict=True)]
    finish(
        {
            "benchmark": "import_time",
            "unit": "ms",
            "processes": {k: spread(v) for k, v in samples.items()},
            "beyond_numpy (bar 60)": spread(difference),
        },
        options.out,
    )


if __name__ == "__main__":
    main()
