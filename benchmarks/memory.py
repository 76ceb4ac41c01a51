"""Memory of a run twenty times its budget: resident set beyond the start, against the budget. Bar: budget + 10 %.

Also bytes kept per kernel record (bar 96). The work comes at a pace that the decoder keeps up with. Each run is a process
of its own: what an earlier one has given back would be used again, and not be seen.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time

from benchmarks.common import arguments, finish, summary

BUDGET = 64_000_000
RECORDS = 20 * BUDGET // 48 // 1000 * 1000


def resident() -> int:
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGESIZE")


def run(keep: str, records: int) -> dict[str, float]:
    """Amounts are bytes."""
    import cuptiprof
    from cuptiprof.sim.sim_device import Op, SimDevice

    device = SimDevice()
    prof = cuptiprof.profile(device="sim", activities=["kernel"], keep=keep, budget=BUDGET)
    ops = device.ops(1000, Op.KERNEL, name="_Z6kernelPf", duration_ns=100)
    before = resident()
    peak = 0
    with prof:
        for i in range(records // 1000):
            device.run(ops)
            while True:
                counts = prof._session.counts()
                if counts["launches"] - counts["kernels_received"] < 4000:
                    break
                time.sleep(0.0005)
            if i % 50 == 0:
                peak = max(peak, resident() - before)
        peak = max(peak, resident() - before)
        live = prof._session.counts()["live_bytes"]
    result = prof.result()
    return {
        "rows_kept": len(result.kernels),
        "lost_in_pool": result.losses["pool_exhausted"],
        "evicted": result.losses["budget_evicted"],
        "bytes_per_kernel_row": live / max(len(result.kernels), 1),
        "peak_resident_to_budget (bar 1.10)": peak / BUDGET,
    }


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--runs", type=int, default=6)
    parser.add_argument("--one", action="store_true", help="only one run, in this process")
    options = parser.parse_args()
    if options.one:
        run("latest", 20_000)  # what the first session maps once and for all
        print(json.dumps(run("latest", RECORDS)))
        return
    command = [sys.executable, "-m", "benchmarks.memory", "--one"]
    runs = [
        json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        for _ in range(options.runs)
    ]
    latest = {name: summary([r[name] for r in runs]) for name in runs[0]}
    data_to_budget = round(RECORDS * 48 / BUDGET, 1)
    finish({"benchmark": "memory", "budget": BUDGET, "records": RECORDS, "data_to_budget": data_to_budget, "latest": latest}, options.out)  # fmt: skip


if __name__ == "__main__":
    main()
