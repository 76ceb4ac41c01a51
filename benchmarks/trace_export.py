"""Traces for viewers, databases and tables of 10^4, 10^5, 10^6 kernels: python -m benchmarks.trace_export [--kernels N ...]

A training loop of N kernels (that of benchmarks.scale: a driver call a launch, copies, regions) is written as Chrome's JSON, the
same compressed, as Perfetto's protobuf, as a database of Nsight Systems and of nvprof, and its kernels as Parquet, Arrow and CSV, each --runs
times; the least counts. Beside it, up to 10^5 kernels, the peer: json.dumps
of the same events, which are read back from our file first. Beside each time by the clock stands the CPU's, which other programs
disturb less.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.common import arguments, finish, significant
from benchmarks.scale import FEW, build

OURS = {"chrome": "trace.json", "chrome, gzip": "trace.json.gz", "perfetto": "trace.pftrace",
    "collapsed": "trace.folded",
    "speedscope": "trace.speedscope.json",
    "pprof": "trace.pb.gz",
    "hatchet": "trace.hatchet.json",
        "nsys": "trace.sqlite", "nvprof": "trace.nvprof", "parquet": "kernels.parquet", "arrow": "kernels.arrow", "csv": "kernels.csv"}  # fmt: skip
PEER = "peer: json.dumps"
LARGEST_OF_PEER = 100_000
"""kernels; the dicts of ten times as many take 10 GB"""


def timed(work: Callable[[], object], runs: int) -> dict[str, float]:
    """Seconds by the clock and of CPU, the least of each."""
    found = []
    for _ in range(runs):
        began, worked = time.perf_counter(), time.process_time()
        work()
        found.append((time.perf_counter() - began, time.process_time() - worked))
    return {
        "seconds": significant(min(clock for clock, _ in found), 3),
        "cpu_seconds": significant(min(cpu for _, cpu in found), 3),
    }


def measure(kernels: int, runs: int, folder: Path) -> dict[str, Any]:
    """All writers of one size; prints as it goes."""
    result = build(kernels, FEW)
    out: dict[str, Any] = {}

    def show(name: str) -> None:
        one = out[name]
        size = f", {one['bytes'] / 1e6:,.1f} MB"
        print(
            f"{kernels:>10,} kernels  {name}: {one['seconds']:.3g} s (CPU {one['cpu_seconds']:.3g}){size}",
            file=sys.stderr, flush=True,
        )  # fmt: skip

    def export(path: Path) -> None:
        result.export(path, overwrite=True)

    for name, file in OURS.items():
        path = folder / file
        out[name] = timed(lambda path=path: export(path), runs)  # type: ignore[misc]
        out[name]["bytes"] = path.stat().st_size
        show(name)
    if kernels <= LARGEST_OF_PEER:
        trace = json.loads((folder / OURS["chrome"]).read_bytes())
        path = folder / "peer.json"
        out[PEER] = timed(lambda: path.write_text(json.dumps(trace)), runs)
        out[PEER]["bytes"] = path.stat().st_size
        show(PEER)
    return out


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--kernels", type=int, nargs="+", default=[10_000, 100_000, 1_000_000], metavar="N")
    parser.add_argument("--runs", type=int, default=2, help="of each writer; the least time counts")
    parser.add_argument("--where", type=Path, help="folder for the files, in place of the temporary one")
    options = parser.parse_args()
    found = {}
    for kernels in options.kernels:
        with tempfile.TemporaryDirectory(dir=options.where) as folder:
            found[str(kernels)] = measure(kernels, options.runs, Path(folder))
    finish({"benchmark": "trace_export", "kernels": found}, options.out)


if __name__ == "__main__":
    main()
