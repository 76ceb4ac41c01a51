"""What watching a session costs the program (docs/live.md): CPU time of our threads by kernel, and the time of a look, on the simulated device.

``python -m benchmarks.live [--batches N]``; each case in a process of its own.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time

BATCH = 100_000


def measure(case: str, batches: int) -> dict[str, float]:
    """One session of ``batches`` times ``BATCH`` kernels of 100 names. CPU ns a kernel of the decoder, kernels a second, ms of looks."""
    import numpy as np

    import cuptiprof
    from cuptiprof.cli.live_layout import live_lines
    from cuptiprof.sim.sim_device import Op, SimDevice
    from cuptiprof.watch.live_figures import LiveFigures

    device = SimDevice()
    ops = device.ops(BATCH, Op.KERNEL, name="k", grid=(1, 1, 1), block=(128, 1, 1), duration_ns=500)
    ops["name"] = np.array([device.name_address(f"_Z9kernel{i:03d}Pf") for i in range(100)])[np.arange(BATCH) % 100]
    drawn: list[float] = []

    def draw(figures: LiveFigures) -> None:
        began = time.thread_time()
        live_lines(figures, 100, 18)
        drawn.append(1e3 * (time.thread_time() - began))

    watched = {"off": {}, "on": {"on_live": draw}}[case]
    looks: list[float] = []
    with cuptiprof.profile(device="sim", budget="1 GB", activities=["kernel"], **watched) as prof:
        began = time.perf_counter()
        for i in range(batches):
            device.run(ops)
            if case == "on" and i % 10 == 9:  # beside those that the feed takes
                look = time.perf_counter()
                prof._session.live_sums(50)
                looks.append(1e3 * (time.perf_counter() - look))
        took = time.perf_counter() - began
        decoder = thread_cpu_ns("cuptiprof-recs")
    kernels = batches * BATCH
    return {
        "kernels_per_s": kernels / took,
        "decoder_ns_per_kernel": decoder / kernels,
        "look_ms": statistics.median(looks) if looks else 0.0,
        "look_max_ms": max(looks, default=0.0),
        "lines_ms": statistics.median(drawn) if drawn else 0.0,
    }


def thread_cpu_ns(name: str) -> int:
    """CPU time of the thread of this process with that name."""
    for tid in os.listdir("/proc/self/task"):
        with open(f"/proc/self/task/{tid}/comm") as f:
            if f.read().strip() != name:
                continue
        with open(f"/proc/self/task/{tid}/schedstat") as f:
            return int(f.read().split()[0])
    raise RuntimeError(f"no thread {name}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batches", type=int, default=80)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--case", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.case:
        print(json.dumps(measure(arguments.case, arguments.batches)))
        return 0
    rows: dict[str, list[dict[str, float]]] = {"off": [], "on": []}
    for _ in range(arguments.rounds):
        for case, of_case in rows.items():
            words = [sys.executable, "-m", "benchmarks.live", "--case", case, "--batches", str(arguments.batches)]
            of_case.append(json.loads(subprocess.run(words, capture_output=True, text=True, check=True).stdout))
    for case, of_case in rows.items():
        medians = {key: statistics.median(row[key] for row in of_case) for key in of_case[0]}
        print(case, *(f"{key}={value:,.3f}" for key, value in medians.items()), "(SIMULATED)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
