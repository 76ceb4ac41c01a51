"""Waves and tails, and kernels by their properties: by hand, and against a loop over every launch."""

from __future__ import annotations

import math
from collections import defaultdict
from typing import Any

import numpy as np
import pytest
from conftest import DATA
from report_results import config, make_result

import cuptiprof
from cuptiprof.data.occupancy import chip_limits, occupancy
from cuptiprof.data.result import Result

A100 = {
    "device": 0,
    "name": "A100",
    "num_multiprocessors": 108,
    "compute_capability_major": 8,
    "compute_capability_minor": 0,
}
V100 = {
    "device": 1,
    "name": "V100",
    "num_multiprocessors": 80,
    "compute_capability_major": 7,
    "compute_capability_minor": 0,
}


def kernel(start: int, end: int, **more: Any) -> dict[str, Any]:
    return {"name": "compute", "start": start, "end": end, "stream": 7, **more}


def test_the_last_wave_by_hand() -> None:
    # 1,024 threads of 30 registers: an SM of an A100 holds two blocks, so that 216 are a wave.
    sizes = {"full": 432, "half": 324, "small": 54, "no GPU": 1, "nccl": 8}
    configs = [config((blocks, 1, 1), (1024, 1, 1)) for blocks in sizes.values()]
    names = ("full", "half", "small", "no GPU", "ncclDevKernel_AllReduce_Sum_f32_RING_LL")
    kernels = [kernel(0, 600, name=name, config=i, device=5 if name == "no GPU" else 0) for i, name in enumerate(names)]
    report = make_result({"kernels": kernels, "launch_configs": configs, "devices": [A100]}).report("waves")
    found = {row["name"]: row for row in report.rows}
    keys = ("waves", "full_waves", "last_wave_pct", "efficiency_pct", "held_blocks", "limited_by", "tail_ns", "lost_ns")
    assert {name: [row[key] for key in keys] for name, row in found.items()} == {
        "full": [2.0, 2.0, 100.0, 100.0, 2.0, "WARPS|REGS", 0, 0],
        "half": [1.5, 1.0, 50.0, 75.0, 2.0, "WARPS|REGS", 300, 150],  # two waves of 300 ns, half of the second empty
        "small": [0.25, 0.0, 25.0, 25.0, 2.0, "WARPS|REGS", 0, 450],
        "no GPU": [None, None, None, None, None, None, 0, 0],
        names[-1]: [None, None, None, None, None, None, 0, 0],  # takes as few SMs as it can
    }
    assert [row["lost_ns"] for row in report.rows] == [450, 150, 0, 0, 0]
    assert "Of all kernel time at most 10.00 % in tails, 20.00 % lost." in str(report)


def test_a_block_that_no_sm_holds() -> None:
    big = config((4, 1, 1), (32, 1, 1), dynamic_shared_memory=1 << 30)
    (row,) = make_result({"kernels": [kernel(0, 9)], "launch_configs": [big], "devices": [A100]}).report("waves").rows
    assert row["waves"] is None and row["lost_ns"] == 0


def drawn(seed: int) -> Result:
    rng = np.random.default_rng(seed)
    pick = lambda *values: values[rng.integers(len(values))]  # noqa: E731
    configs = [
        config((int(rng.integers(1, 3_000)), pick(1, 2), 1), (pick(32, 96, 256, 1024), 1, 1),
               registers_per_thread=pick(16, 64, 128), dynamic_shared_memory=pick(0, 9_000, 70_000))
        for _ in range(4)
    ]  # fmt: skip
    configs.append(configs[0] | {"local_memory_total": 7})  # the same to everybody
    operators = [
        {"name": pick("aten::mm", "aten::relu"), "start": 0, "end": 9, "instance": i + 1, "thread": 1} for i in range(3)
    ]
    kernels = [
        kernel(start := int(rng.integers(0, 9_000)), start + int(rng.integers(0, 900)), name=pick("a", "b_16816"),
               config=int(rng.integers(0, 6)), device=int(rng.integers(0, 3)), operator_instance=int(rng.integers(0, 4)),
               operator=pick("", "x/aten::relu", "aten::mm"))
        for _ in range(60)
    ]  # fmt: skip
    return make_result({"kernels": kernels, "launch_configs": configs, "devices": [A100, V100], "operators": operators})


@pytest.mark.parametrize("seed", range(8))
def test_against_a_loop_over_launches(seed: int) -> None:
    result = drawn(seed)
    waves: dict[Any, list[float]] = defaultdict(lambda: [0, 0, 0.0, 0.0])
    groups: dict[Any, list[int]] = defaultdict(lambda: [0, 0])
    operators = [str(name) for name in result.operators["name"]]
    for i in range(len(result.kernels)):
        row = result.kernels.row(i)
        c = result.launch_configs.row(row["config"]) if row["config"] < len(result.launch_configs) else {}
        grid, block = (tuple(c.get(f"{what}_{axis}", 0) for axis in "xyz") for what in ("grid", "block"))
        lasted = row["end"] - row["start"]
        shared = c.get("static_shared_memory", 0) + c.get("dynamic_shared_memory", 0)
        key = (row["name"], row["device"], grid, block, c.get("registers_per_thread", 0), shared)
        own = row["operator_instance"]
        operator = operators[own - 1] if own else row["operator"].rpartition("/")[2]
        groups[(*key, operator or None)][0] += 1
        groups[(*key, operator or None)][1] += lasted
        entry = waves[key]
        entry[0] += 1
        entry[1] += lasted
        gpu = {0: A100, 1: V100}.get(row["device"])
        if gpu and c:
            chip = chip_limits(gpu["compute_capability_major"], 0)
            assert chip is not None
            held = int(occupancy(chip, block[0], key[4], 0, shared).active_blocks[0])
            if held:
                count = math.prod(grid) / (gpu["num_multiprocessors"] * held)
                number = math.ceil(count)
                if number > 1 and number > count:
                    entry[2] += lasted / number
                entry[3] += lasted / number * (number - count)
    found = {
        tuple(row[k] for k in ("name", "device", "grid", "block", "registers", "shared_memory")): row
        for row in result.report("waves").rows
    }
    assert {k: (r["calls"], r["total_ns"]) for k, r in found.items()} == {k: (v[0], v[1]) for k, v in waves.items()}
    for key, row in found.items():
        assert (row["tail_ns"], row["lost_ns"]) == pytest.approx(tuple(waves[key][2:]), abs=0.51)
    by_operator = {
        tuple(row[k] for k in ("name", "device", "grid", "block", "registers", "shared_memory", "operator")): row
        for row in result.report("kernels-by-properties").rows
    }
    assert {k: [r["calls"], r["total_ns"]] for k, r in by_operator.items()} == dict(groups)
    assert all(
        (row["tensor_cores"] == "yes") == ("16816" in key[0]) for key, row in by_operator.items() if row["total_ns"]
    )
    assert all((row["eligible"] == "yes") == (key[-1] == "aten::mm") for key, row in by_operator.items())


def test_groups_add_up_to_the_kernel_view() -> None:
    result = cuptiprof.open(DATA / "ranks" / "rank0.json.gz")
    totals: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for row in result.report("kernels-by-properties").rows:
        totals[row["name"]][0] += row["calls"]
        totals[row["name"]][1] += row["total_ns"]
    assert dict(totals) == {row["name"]: [row["calls"], row["total_ns"]] for row in result.report("kernels").rows}
