"""Memory by region: allocations know where they were made, the report who held what."""

from __future__ import annotations

import random
import threading
from typing import Any

import numpy as np
import pytest

import cuptiprof
from cuptiprof.analysis.allocators.allocations import STAYED, allocations
from cuptiprof.data.result import Result
from cuptiprof.data.tables import Strings, Table
from cuptiprof.sim.sim_device import Flag, Op, SimDevice

MEMORY = ["kernel", "runtime", "memory"]
MIB = 1 << 20
DEVICE, PINNED = 3, 2  # CUpti_ActivityMemoryKind


def collected(body: Any) -> Result:
    with cuptiprof.profile(device="sim", activities=MEMORY) as prof:
        body()
    return prof.result()


def rows_of(result: Result) -> dict[str, Any]:
    return {(row["kind"], row["region"]): row for row in result.report("memory").rows}


def test_an_allocation_is_the_region_s_it_was_made_in(sim: SimDevice) -> None:
    def body() -> None:
        with cuptiprof.region("load"):
            sim.call(Op.ALLOC, address=0x1000, bytes=10 * MIB)
            with cuptiprof.region("pin"):
                sim.call(Op.ALLOC, address=0x7000, bytes=3 * MIB, memory_kind=PINNED)
        with cuptiprof.region("step"):
            sim.call(Op.ALLOC, address=0x2000, bytes=20 * MIB, flags=Flag.ASYNC)
            sim.call(Op.FREE, address=0x2000, flags=Flag.ASYNC)
            sim.call(Op.ALLOC, address=0x2000, bytes=5 * MIB, flags=Flag.ASYNC)
        sim.call(Op.FREE, address=0x1000)

    result = collected(body)
    assert list(result.memory["region"]) == ["load", "load/pin", "step", "step", "step", ""]
    assert (result.memory["thread"] == threading.get_native_id()).all()
    rows = rows_of(result)
    assert {key: row["peak_bytes"] for key, row in rows.items()} == {
        ("Device", "step"): 20 * MIB,
        ("Device", "load"): 10 * MIB,
        ("Pinned", "load/pin"): 3 * MIB,
    }
    assert {key: row["stayed_bytes"] for key, row in rows.items()} == {
        ("Device", "step"): 5 * MIB,
        ("Device", "load"): 0,
        ("Pinned", "load/pin"): 3 * MIB,
    }
    assert rows["Device", "step"]["allocations"] == 2 and rows["Device", "step"]["allocated_bytes"] == 25 * MIB
    text = str(result.report("memory"))
    assert "Device memory" in text
    assert "Pinned memory" in text
    assert ", Device: most in use 30.000MB" in text


def test_a_pool_is_the_region_s_it_was_made_in(sim: SimDevice) -> None:
    with cuptiprof.profile(device="sim", activities=["memory_pool"]) as prof, cuptiprof.region("pools"):
        sim.call(Op.MEMORY_POOL, address=0x5000, bytes=MIB, value=1)
    pools = prof.result().memory_pools
    assert list(pools["region"]) == ["pools"]
    assert pools["thread"].tolist() == [threading.get_native_id()]


def test_without_the_activity_there_is_nothing_and_launches_cost_the_same(sim: SimDevice) -> None:
    with cuptiprof.profile(device="sim") as prof:
        sim.call(Op.ALLOC, address=0x1000, bytes=MIB)
    assert len(prof.result().memory) == 0
    assert 'activities=["memory", ...]' in str(prof.result().report("memory"))


def test_who_held_memory_when_there_was_none_left(sim: SimDevice) -> None:
    def body() -> None:
        with cuptiprof.region("weights"):
            sim.call(Op.ALLOC, address=0x1000, bytes=70 * MIB)
        with cuptiprof.region("cache"):
            sim.call(Op.ALLOC, address=0x2000, bytes=9 * MIB)
        with cuptiprof.region("batch"):
            sim.call(Op.ALLOC, address=0x3000, bytes=40 * MIB, return_value=2)

    result = collected(body)
    assert len(result.memory) == 2  # nothing was allocated the third time
    said = [line for line in str(result.report("memory")).splitlines() if "found no memory" in line]
    assert len(said) == 1
    assert "cudaMalloc in batch" in said[0]
    assert said[0].index("weights") < said[0].index("cache")


def made(rows: list[tuple[int, int, int, int]]) -> Table:
    """(time, address, bytes or 0 for a release, region)"""
    strings = Strings(["", *"abcdefgh"])
    columns = {
        "timestamp": [r[0] for r in rows],
        "address": [r[1] for r in rows],
        "bytes": [r[2] for r in rows],
        "operation": [1 if r[2] else 2 for r in rows],
        "memory_kind": [DEVICE] * len(rows),
        "region": [r[3] for r in rows],
    }
    return Table.from_columns("memory", columns, strings)


@pytest.mark.parametrize("seed", range(20))
def test_peak_and_leaks_agree_with_counting_one_by_one(seed: int) -> None:
    dice = random.Random(seed)
    rows: list[tuple[int, int, int, int]] = []
    held: dict[int, tuple[int, int, int]] = {}
    level = peak = peak_time = 0
    lives = []
    for time in range(1, 400):
        free = [a for a in range(20) if a not in held]
        if held and (not free or dice.random() < 0.45):
            address = dice.choice(list(held))
            start, size, region = held.pop(address)
            rows.append((time, address, 0, 0))
            lives.append((start, time, size, region))
            level -= size
        else:
            address, size, region = dice.choice(free), dice.randrange(1, 1000), dice.randrange(9)
            held[address] = (time, size, region)
            rows.append((time, address, size, region))
            level += size
        if level > peak:
            peak, peak_time = level, time
    lives += [(start, STAYED, size, region) for start, size, region in held.values()]
    dice.shuffle(rows)  # records of several threads come in any order
    found = allocations(made(rows))
    assert list(zip(*(c.tolist() for c in (found.start, found.end, found.size, found.region)), strict=True)) == sorted(
        lives
    )
    assert found.peak() == (peak_time, peak)
    assert found.unseen_releases == 0
    assert int(found.size[found.held_at(peak_time)].sum()) == peak


def test_releases_and_allocations_that_were_not_seen() -> None:
    found = allocations(
        made([(1, 7, 0, 0), (2, 7, 100, 1), (3, 8, 0, 0), (4, 7, 50, 2), (5, 8, 0, 0), (6, 7, 0, 0), (7, 7, 0, 0)])
    )
    assert found.unseen_releases == 4
    assert found.start.tolist() == [2, 4]
    assert found.end.tolist() == [4, 6]  # allocated again: the release in between was lost
    assert found.peak() == (2, 100)
    assert allocations(made([])).peak() == (0, 0)
    assert len(allocations(made([]))) == 0 and not np.any(allocations(made([])).size)
