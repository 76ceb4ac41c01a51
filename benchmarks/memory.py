"""Memory of a run twenty times its budget: resident set beyond the start, against the budget. Bar: budget + 10 %.

Also bytes kept per kernel record (bar 96). The work comes at a pace that the decoder keeps up with.
"""

from __future__ import annotations

import os
import time

from benchmarks.common import arguments, finish

BUDGET = 64_000_000


def resident() -> int:
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGESIZE")


def run(keep: str, records: int) -> dict[str, float]:
    import cuptiprof
    from cuptiprof.sim.device import Op, SimDevice

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
        "records": records,
        "rows_kept": len(result.kernels),
        "lost_in_pool": result.losses["pool_exhausted"],
        "evicted": result.losses["budget_evicted"],
        "bytes_per_kernel_row": round(live / max(len(result.kernels), 1), 1),
        "data_to_budget": round(records * 48 / BUDGET, 1),
        "peak_resident_to_budget (bar 1.10)": round(peak / BUDGET, 3),
    }


def main() -> None:
    options = arguments(__doc__).parse_args()
    records = 20 * BUDGET // 48 // 1000 * 1000
    run("latest", 20_000)  # what the first session maps once and for all
    finish({"benchmark": "memory", "budget": BUDGET, "latest": run("latest", records)}, options.out)


if __name__ == "__main__":
    main()
