"""What planning 20 metrics takes. Bars: 1 ms from the cache, 200 ms without it.

NVIDIA's own libcupti, which plans without a GPU. "first in a process" is a process of its own, from the call of
``plan`` to its return, so that it includes loading nvperf (100 MB) and the chip's tables.
"""

from __future__ import annotations

import itertools
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.common import arguments, finish, in_turn, summary
from cuptiprof import _core
from cuptiprof.device.locate import find_cupti
from cuptiprof.device.plan_cache import CachedPlanner

METRICS = [
    "dram__bytes_read.sum",
    "dram__bytes_write.sum",
    "dram__throughput.avg.pct_of_peak_sustained_elapsed",
    "gpc__cycles_elapsed.max",
    "l1tex__data_bank_conflicts_pipe_lsu.sum",
    "l1tex__t_sector_hit_rate.pct",
    "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
    "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum",
    "lts__t_sectors_op_read.sum",
    "lts__t_sectors_op_write.sum",
    "sm__cycles_active.avg",
    "sm__inst_executed.avg.per_cycle_active",
    "sm__inst_executed_pipe_tensor.sum",
    "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active",
    "sm__throughput.avg.pct_of_peak_sustained_elapsed",
    "sm__warps_active.avg.pct_of_peak_sustained_active",
    "smsp__inst_executed_pipe_fma.sum",
    "smsp__inst_executed_pipe_lsu.sum",
    "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum",
    "smsp__warps_issue_stalled_long_scoreboard.sum",
]
FIRST = """
import sys, time
from cuptiprof import _core
from cuptiprof.device.plan_cache import CachedPlanner
library = _core.load_cupti(sys.argv[1], "benchmark")
start = time.perf_counter_ns()
CachedPlanner(library, sys.argv[2], cache_dir=sys.argv[3]).plan(sys.argv[4:])
print(time.perf_counter_ns() - start)
"""


MS = 1e6


def timed(call: Callable[[], object]) -> float:
    """ns of a call."""
    start = time.perf_counter_ns()
    call()
    return time.perf_counter_ns() - start


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--rounds", type=int, default=21)
    parser.add_argument("--chip", default="GH100")
    parser.add_argument("--library", help="path of a libcupti; default: the one a session would take")
    options = parser.parse_args()
    found = find_cupti(options.library)
    library = _core.load_cupti(found.path, found.how)

    with tempfile.TemporaryDirectory() as scratch:
        folders = (Path(scratch) / str(i) for i in itertools.count())
        made = str(Path(scratch) / "made")

        def planner(folder: str) -> CachedPlanner:
            return CachedPlanner(library, options.chip, cache_dir=folder)

        [group] = planner(made).plan(METRICS)

        def on_disk() -> float:
            """A folder that this process has not seen: what a new process with a filled cache does."""
            folder = str(shutil.copytree(made, next(folders)))
            return timed(lambda: planner(folder).plan(METRICS))

        def first(folder: str) -> float:
            command = [sys.executable, "-c", FIRST, library.path, options.chip, folder, *METRICS]
            return float(
                subprocess.run(command, check=True, capture_output=True, text=True, cwd=tempfile.gettempdir()).stdout
            )

        one_pass_metrics = [m for m in METRICS if planner(made).plan([m])[0].passes == 1]
        groups = planner(str(next(folders))).one_pass_groups(one_pass_metrics)
        found = in_turn(
            {
                "cached in memory (bar 1)": lambda: timed(lambda: planner(made).plan(METRICS)),
                "cached on disk (bar 1)": on_disk,
                "cached on disk, first in a process (bar 1)": lambda: first(made),
                "uncached (bar 200)": lambda: timed(lambda: planner(str(next(folders))).plan(METRICS)),
                "uncached, first in a process (bar 200)": lambda: first(str(next(folders))),
                "one-pass groups, uncached": lambda: timed(
                    lambda: planner(str(next(folders))).one_pass_groups(one_pass_metrics)
                ),
            },
            options.rounds,
        )
    finish(
        {
            "benchmark": "planning",
            "unit": "ms",
            "cupti": library.cuda_version,
            "chip": options.chip,
            "metrics": len(METRICS),
            "passes": group.passes,
            "one_pass_metrics": len(one_pass_metrics),
            "one_pass_groups": len(groups),
            "plan": {m.name: summary(m.samples, MS) for m in found.measurements},
        },
        options.out,
    )


if __name__ == "__main__":
    main()
