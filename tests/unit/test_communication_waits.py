"""Who waited for whom: by hand, and against a loop over kernels and ranks."""

from __future__ import annotations

import random
from collections import defaultdict
from typing import Any

import pytest
from conftest import DATA
from report_results import make_result

import cuptiprof
from cuptiprof.data.result import Result

NCCL = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"


def nccl(start: int, end: int, name: str = NCCL, **more: Any) -> dict[str, Any]:
    return {"name": name, "start": start, "end": end, "stream": 20, **more}


def rows(*ranks: Result) -> list[list[Any]]:
    keys = ("rank", "communication_ns", "transfer_ns", "synchronising_ns", "kernels", "paired")
    return [[row[key] for key in keys] for row in ranks[0].report("communication", ranks=ranks[1:]).rows]


def test_the_shortest_of_a_kernel_is_the_data() -> None:
    late = make_result({"kernels": [nccl(1_000, 1_100), {"name": "gemm", "start": 0, "end": 900}]}, {"rank": 0})
    early = make_result({"kernels": [nccl(5_200, 5_900)]}, {"rank": 1})  # by another clock
    assert rows(late, early) == [[0, 100, 100, 0, 1, 1], [1, 700, 100, 600, 1, 1]]
    assert rows(early) == [[1, 700, None, None, 1, 0]]
    assert "takes their runs too" in str(early.report("communication"))
    (row,) = [row for row in late.report("communication", ranks=[early]).rows if row["rank"] == 1]
    assert row["synchronising_pct"] == pytest.approx(100 * 600 / 700)


def test_kernels_of_other_numbers_are_not_paired() -> None:
    one = make_result({"kernels": [nccl(0, 10), nccl(20, 50, "ncclDevKernel_Broadcast_RING_LL(int)")]})
    other = make_result(
        {"kernels": [nccl(0, 10), nccl(30, 35), nccl(40, 60, "ncclDevKernel_Broadcast_RING_LL(int)")]}, {"rank": 1}
    )
    assert rows(one, other) == [[0, 40, 20, 10, 2, 1], [1, 35, 20, 0, 3, 1]]


def test_collectives_say_which_belong_together() -> None:
    """Two groups whose kernels come in another order on each rank."""
    groups = [{"group": "data", "ranks": "[0,1]"}, {"group": "tensor", "ranks": "[0,1]"}]
    calls = [{"name": "all_reduce", "instance": i + 1, **group} for i, group in enumerate(groups)]
    one = make_result({"kernels": [nccl(0, 100, collective=1), nccl(200, 230, collective=2)], "collectives": calls})
    other = make_result(
        {"kernels": [nccl(0, 50, collective=2), nccl(100, 140, collective=1)], "collectives": calls}, {"rank": 1}
    )
    assert rows(one, other) == [[0, 130, 40 + 30, 60, 2, 2], [1, 90, 30 + 40, 20, 2, 2]]


@pytest.mark.parametrize("seed", range(6))
def test_against_a_loop(seed: int) -> None:
    rng = random.Random(seed)
    ranks: list[list[dict[str, Any]]] = []
    counts = {name: rng.randint(1, 12) for name in ("ncclA", "ncclB", "ncclC")}
    for rank in range(3):
        kernels, now = [], 0
        for name, count in counts.items():
            for _ in range(count + (rank == 2 and name == "ncclC")):
                now += rng.randint(0, 30)
                kernels.append(nccl(now, now + rng.randint(1, 90), f"{name}Kernel"))
                now = kernels[-1]["end"]
        rng.shuffle(kernels)
        ranks.append(kernels)
    durations: dict[Any, list[int]] = defaultdict(list)
    for kernels in ranks:
        place: dict[str, int] = defaultdict(int)
        for k in sorted(kernels, key=lambda k: k["start"]):
            durations[k["name"], place[k["name"]]].append(k["end"] - k["start"])
            place[k["name"]] += 1
    expected = []
    for rank, kernels in enumerate(ranks):
        of_data = sum(min(lasted) for (name, _), lasted in durations.items() if "C" not in name)
        lasted = [k["end"] - k["start"] for k in kernels]
        together = sum(n for n, k in zip(lasted, kernels, strict=True) if "C" not in k["name"])
        paired = counts["ncclA"] + counts["ncclB"]
        expected.append([rank, sum(lasted), of_data, together - of_data, len(kernels), paired])
    assert rows(*(make_result({"kernels": kernels}, {"rank": rank}) for rank, kernels in enumerate(ranks))) == expected


def test_two_recorded_ranks() -> None:
    first, second = (cuptiprof.open(DATA / "ranks" / f"rank{i}.json.gz") for i in (0, 1))
    found = rows(first, second)
    assert [row[4] for row in found] == [row[5] for row in found] == [12, 12]
    assert all(row[1] == row[2] + row[3] for row in found)  # all are paired
    assert found[0][2] == found[1][2]  # the same data


def test_the_time_of_the_data_by_collective() -> None:
    """A call of two kernels beside its partner's on a rank that came later; a kind that one rank has more often is not known."""

    def rank(number: int, late: int, *more: dict[str, Any]) -> Result:
        calls = [
            {"instance": i, "name": name, "group": "0", "group_size": 2, "ranks": "[0,1]", "dtype": "float", "in_bytes": 64, "out_bytes": 64,
             "start": 0, "end": 10, "thread": 1} for i, name in ((1, "all_reduce"), (2, "broadcast"))
        ]  # fmt: skip
        kernels = [
            {"name": "ncclDevKernel_AllReduce", "start": 1000 + late, "end": 1900, "collective": 1},
            {"name": "ncclDevKernel_AllReduce", "start": 2000, "end": 2300 + number, "collective": 1},
            {"name": "ncclDevKernel_Broadcast", "start": 3000, "end": 3100, "collective": 2},
            *more,
        ]
        result = make_result({"collectives": calls, "kernels": kernels})
        result.metadata["rank"] = number
        return result

    extra = {"name": "ncclDevKernel_Broadcast", "start": 4000, "end": 4100, "collective": 2}
    early, late = rank(0, 0), rank(1, 500, extra)
    rows = {(row["rank"], row["name"]): row for row in early.report("collectives", ranks=[late]).rows}
    assert len(rows) == 4
    for number in (0, 1):
        assert rows[number, "all_reduce"]["transfer_ns"] == 400 + 300  # the shorter of each pair
        assert rows[number, "broadcast"]["transfer_ns"] is None
    assert "rank 1, group 0" in str(early.report("collectives", ranks=[late]))
    alone = early.report("collectives")
    assert {row["transfer_ns"] for row in alone.rows} == {None} and "all ranks tell" in str(alone)
