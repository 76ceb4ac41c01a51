"""What counters cost a launch that was not selected: 10 of 100,000 launches counted, against plain tracing.

On the stand-in: a driver that does nothing and a GPU that is never behind, so that what is timed is the callback, in CPU time of
the launching thread. Conditions, in turn in one process: tracing, no session (the floor), counters of the launches of a name, a
region, a line of Python, an NVTX range, a step.
"""

from __future__ import annotations

import functools
import time
from typing import Any

import numpy as np
import nvtx

import cuptiprof
from benchmarks.common import arguments, finish, in_turn, ratio, summary
from cuptiprof import KernelFilter
from cuptiprof.sim.sim_device import Op, SimDevice

LAUNCHES = 100_000
SELECTED = 10
CONDITIONS = (
    "tracing",
    "none",
    "counters by name",
    "counters by region",
    "counters by line",
    "counters by NVTX range",
    "counters by step",
)
METRICS = ["achieved_occupancy", "ipc", "dram_read_throughput"]


def make_ops(device: SimDevice) -> Any:
    """100,000 launches of 40 kernels; ten of them, evenly spread, of one that the filter names."""
    names = [device.ops(1, Op.KERNEL, name=f"_Z{len(f'kernel{i}')}kernel{i}Pf", duration_ns=1) for i in range(40)]
    ops = np.concatenate(names)[np.arange(LAUNCHES) % 40]
    chosen = device.ops(1, Op.KERNEL, name="_Z6chosenPf", duration_ns=1)
    ops[LAUNCHES // SELECTED // 2 :: LAUNCHES // SELECTED] = chosen
    return ops


def counted_line(device: SimDevice, ops: Any) -> None:
    device.run(ops)


def one_round(condition: str) -> dict[str, float]:
    """ns a launch of the unselected ones, and how many launches were counted."""
    keywords: dict[str, Any] = {
        "none": {},
        "tracing": {},
        "counters by name": {"metrics": METRICS, "kernels": "regex:chosen"},
        "counters by region": {"metrics": METRICS, "regions": "counted"},
        "counters by line": {"metrics": METRICS, "kernels": KernelFilter(lines="counted_line")},
        "counters by NVTX range": {"metrics": METRICS, "kernels": KernelFilter.from_ncu(nvtx_include="counted/")},
        "counters by step": {"metrics": METRICS, "kernels": KernelFilter(steps=0)},
    }[condition]
    device = SimDevice()
    if condition == "none":
        device.reset(virtual_clock=True)
        ops = make_ops(device)
        start = time.thread_time_ns()
        device.run(ops)
        return {"ns": (time.thread_time_ns() - start) / LAUNCHES, "counted": 0}
    with cuptiprof.profile(device="sim", activities=["kernel"], budget="512 MB", **keywords) as prof:
        ops = make_ops(device)
        if condition == "counters by region":
            with cuptiprof.region("counted"):
                device.run(ops[:SELECTED])
        elif condition == "counters by line":
            counted_line(device, ops[:SELECTED])
        elif condition == "counters by NVTX range":
            with nvtx.annotate("counted"):
                device.run(ops[:SELECTED])
        elif condition == "counters by step":
            device.run(ops[:SELECTED])
            prof.step()
        device.run(ops[:1000])  # the first sight of a name is not what is asked
        if condition == "counters by name":
            # The counted ones are timed apart: what is asked is what the others pay.
            plain = ops[ops["name"] != ops["name"][LAUNCHES // SELECTED // 2]]
            device.run(ops[LAUNCHES // SELECTED // 2 :: LAUNCHES // SELECTED])
        else:
            plain = ops
        start = time.thread_time_ns()
        device.run(plain)
        elapsed = time.thread_time_ns() - start
    return {"ns": elapsed / len(plain), "counted": len(prof.result().metric_ranges)}


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--rounds", type=int, default=40)
    options = parser.parse_args()
    found = in_turn({c: functools.partial(one_round, c) for c in CONDITIONS}, options.rounds)
    finish(
        {
            "benchmark": "selectivity",
            "device": "stand-in (a driver that does nothing else, kernels of 1 ns), CPU time of the launching thread",
            "launches": LAUNCHES,
            "selected": {m.name: sorted({int(n) for n in m.reported["counted"]}) for m in found.measurements},
            "ns_per_launch": {m.name: summary(m.samples) for m in found.measurements},
            "ratio_to_tracing": {c: ratio(found.verdicts[c]) for c in CONDITIONS if c.startswith("counters")},
            "bar": 1.2,
        },
        options.out,
    )


if __name__ == "__main__":
    main()
