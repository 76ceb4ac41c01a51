"""Sets of metrics that take a given number of passes on the chip at hand, each input of which takes one."""

from __future__ import annotations

from typing import Any

from cuptiprof import _core
from cuptiprof.device.devices import open_device
from cuptiprof.metrics import resolve

ONE_PASS = ["achieved_occupancy", "ipc", "dram_read_throughput"]
# On GH100 with CUPTI 13.0 each of these adds a pass; other chips and the stand-in go on with every nvprof metric.
CANDIDATES = ["gld_efficiency", "atomic_transactions", "branch_efficiency", "gld_throughput", "global_store_requests", "l2_global_load_bytes", "l2_local_load_bytes", "l2_surface_load_bytes"]  # fmt: skip


def metrics_of(device: str, passes: int) -> list[str]:
    """Metric names that need `passes` passes together, or as near below as the chip's metrics come.

    All can be had by "iterate" too: what needs several passes by itself is left out.
    """
    library = open_device(device).library
    chip = _core.chip_name(library, 0)
    planner = _core.MetricPlanner(library, chip)
    by_name = {m.name: m for m in resolve("all", chip, describe=planner.properties)}

    def needed(metrics: list[Any]) -> int:
        groups = planner.plan(list(dict.fromkeys(i for m in metrics for i in m.inputs)))
        return groups[0].passes if len(groups) == 1 else passes + 1

    chosen = [by_name[n] for n in ONE_PASS]
    now = needed(chosen)
    names = [n for n in CANDIDATES if n in by_name] + [n for n in by_name if n not in CANDIDATES]
    single = [m for m in (by_name[n] for n in names) if m.inputs and all(needed_alone(planner, i) for i in m.inputs)]
    while now < passes:
        for metric in single:
            if metric not in chosen and now < (more := needed([*chosen, metric])) <= passes:
                chosen, now = [*chosen, metric], more
                break
        else:  # nothing adds a pass by itself
            rest = [m for m in single if m not in chosen]
            if not rest:
                break
            chosen.append(rest[0])
            now = needed(chosen)
    return [m.name for m in chosen]


def needed_alone(planner: _core.MetricPlanner, name: str) -> bool:
    """Whether one pass gives this perfworks metric."""
    return sum(g.passes for g in planner.plan([name])) == 1
