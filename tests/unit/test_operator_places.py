"""Where something happened of which only the time is known: an operator is named only where that is certain."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
from report_results import make_result

from cuptiprof.analysis.allocators import allocator_memory as memory
from cuptiprof.analysis.operator_work.operator_places import (
    KNOWN,
    OUTSIDE,
    UNKNOWN,
    operator_paths,
    operator_places,
    region_places,
)
from cuptiprof.data.result import Result

USER = 7


def operator(instance: int, start: int, end: int, *, parent: int = 0, thread: int = 1, **more: Any) -> dict[str, Any]:
    return {"instance": instance, "start": start, "end": end, "parent": parent, "thread": thread,
            "name": f"op{instance}", "scope": 0, **more}  # fmt: skip


def places(result: Result, *spans: tuple[int, int], threads: tuple[int, ...] = ()) -> list[tuple[int, int]]:
    begin, end = (np.array(side, np.int64) for side in zip(*spans, strict=True))
    found = operator_places(result.operators, begin, end, np.array(threads or [0] * len(spans), np.uint32))
    instances = result.operators["instance"]
    return [
        (int(known), int(instances[row]) if row >= 0 else 0) for known, row in zip(found.known, found.row, strict=True)
    ]


NESTED = [
    operator(1, 100, 1000),
    operator(2, 200, 400, parent=1),
    operator(3, 250, 300, parent=2),
    operator(4, 400, 600, parent=1),
]


def test_the_innermost_that_is_open_for_all_of_the_time() -> None:
    result = make_result({"operators": NESTED})
    assert places(result, (260, 290), (240, 260), (390, 410), (700, 800), (20, 50), (1000, 1100), (90, 110)) == [
        (KNOWN, 3), (KNOWN, 2), (KNOWN, 1), (KNOWN, 1), (OUTSIDE, 0), (OUTSIDE, 0), (UNKNOWN, 0),
    ]  # fmt: skip
    assert operator_paths(result.operators) == ["op1", "op1/op2", "op1/op2/op3", "op1/op4"]


def test_two_threads_inside_operators_are_not_told_apart_unless_the_thread_is_known() -> None:
    other = [operator(5, 450, 550, thread=2), operator(6, 2000, 2100, thread=2)]
    result = make_result({"operators": [*NESTED, *other]})
    assert places(result, (460, 470), (2010, 2020), (420, 455)) == [(UNKNOWN, 0), (KNOWN, 6), (UNKNOWN, 0)]
    assert places(result, (460, 470), (460, 470), (460, 470), threads=(1, 2, 3)) == [
        (KNOWN, 4),
        (KNOWN, 5),
        (OUTSIDE, 0),
    ]


def test_a_thread_that_says_so_of_what_it_does_has_not_done_the_rest() -> None:
    other = [operator(5, 450, 550, thread=2)]
    result = make_result({"operators": [*NESTED, *other]})
    begin, end = np.array([460, 220]), np.array([470, 230])
    found = operator_places(result.operators, begin, end, np.zeros(2, np.uint32), known_thread=1)
    assert found.known.tolist() == [KNOWN, OUTSIDE] and result.operators["instance"][found.row[0]] == 5


def test_who_is_only_within_a_scope_of_the_user_s_may_be_waiting_for_another() -> None:
    rows = [operator(1, 0, 1000, scope=USER), operator(2, 100, 200, thread=2), operator(3, 300, 400, parent=1)]
    result = make_result({"operators": rows})
    assert places(result, (120, 150), (320, 350), (600, 700)) == [(KNOWN, 2), (KNOWN, 3), (KNOWN, 1)]


def test_against_looking_at_every_operator() -> None:
    rng = random.Random(7)
    for _ in range(30):
        rows: list[dict[str, Any]] = []

        for thread in (1, 2, 3)[: rng.randrange(1, 4)]:
            fill(rows, rng, rng.randrange(200), 700, 0, thread, 3)
        rng.shuffle(rows)
        spans = [(t, t + rng.randrange(1, 12)) for t in (rng.randrange(800) for _ in range(60))]
        assert places(make_result({"operators": rows}), *spans) == [looked_up(rows, *span) for span in spans]


def fill(
    rows: list[dict[str, Any]], rng: random.Random, start: int, end: int, parent: int, thread: int, depth: int
) -> None:
    """Some operators one after the other, and within each some more."""
    at = start
    while depth and end - at > 8 and len(rows) < 80:
        begin = at + rng.randrange(0, 6)
        until = min(end, begin + rng.randrange(2, 120))
        scope = rng.choice((0, 0, 0, USER))
        row = operator(len(rows) + 1, begin, until, parent=parent, thread=thread, scope=scope)
        rows.append(row)
        fill(rows, rng, begin + 1, until - 1, row["instance"], thread, depth - 1)
        at = until


def looked_up(rows: list[dict[str, Any]], begin: int, end: int) -> tuple[int, int]:
    def touching(kinds: tuple[int, ...]) -> set[int]:
        return {
            r["thread"]
            for r in rows
            if r["start"] < end and r["end"] > begin and (r["scope"] in kinds or begin < r["start"])
        }

    working, any_scope = touching((0,)), touching((0, USER))
    if not any_scope:
        return OUTSIDE, 0
    threads = working or any_scope
    if len(threads) != 1:
        return UNKNOWN, 0
    around = [r for r in rows if r["thread"] in threads and r["start"] <= begin and r["end"] >= end]
    innermost = min(around, key=lambda r: (r["end"] - r["start"], -r["start"]), default=None)
    return (KNOWN, innermost["instance"]) if innermost else (UNKNOWN, 0)


def test_regions_of_a_thread_and_of_tasks_that_share_one() -> None:
    regions = [
        {"start": 0, "end": 100, "instance": 1, "parent": 0, "thread": 1, "path": "a", "name": "a"},
        {"start": 10, "end": 50, "instance": 2, "parent": 1, "thread": 1, "path": "a/b", "name": "b"},
        {"start": 0, "end": 100, "instance": 3, "parent": 0, "thread": 2, "path": "t", "name": "t", "task": 5},
    ]
    result = make_result({"regions": regions})
    times = np.array([20, 45, 60, 20, 20])
    assert region_places(result.regions, times, times + 10, np.array([1, 1, 1, 2, 0])).tolist() == [1, 0, 0, -1, -1]


ALLOC, FREE = memory.ALLOC, memory.FREED


def event(
    time: int, action: int, address: int, size: int, path: str, module: str, known: int = KNOWN
) -> dict[str, Any]:
    return {"timestamp": time, "action": action, "address": address, "bytes": size, "operator": path, "module": module,
            "operator_known": known}  # fmt: skip


def test_self_and_total_by_operator_and_module() -> None:
    """The seeds' definitions: Size Increase is allocated less released, Allocation Size allocated; Self leaves out what is called."""
    events = [
        event(1, ALLOC, 1, 100, "aten::linear/aten::addmm", "net.a"),
        event(2, ALLOC, 2, 50, "aten::linear", "net.a"),
        event(3, FREE, 2, 50, "aten::linear/aten::addmm", "net.a.inner"),
        event(4, ALLOC, 3, 7, "aten::linear/aten::linear", "net.b"),
        event(5, ALLOC, 4, 1000, "", "", 0),
        event(6, FREE, 4, 1000, "", "", OUTSIDE),
        event(7, ALLOC, 5, 3, "my\\/scope", ""),
    ]
    result = make_result({"allocator_events": events})
    use = memory.memory_by_operator(result, 0)
    numbers = {name: tuple(int(column[i]) for column in (use.self_increase, use.total_increase, use.self_allocated,
               use.total_allocated, use.allocations, use.at_peak)) for i, name in enumerate(use.names)}  # fmt: skip
    assert numbers == {
        "aten::addmm": (50, 50, 100, 100, 1, 100),
        "aten::linear": (57, 107, 57, 157, 2, 7),  # within itself it counts once
        memory.UNATTRIBUTED: (1000, 1000, 1000, 1000, 1, 1000),
        memory.NO_OPERATOR: (-1000, -1000, 0, 0, 0, 0),
        "my/scope": (3, 3, 3, 3, 1, 0),
    }
    modules = memory.memory_by_module(result, 0)
    total = dict(zip(modules.names, modules.total_increase.tolist(), strict=True))
    assert total == {"net": 107, "net.a": 100, "net.a.inner": -50, "net.b": 7, memory.UNATTRIBUTED: 1000,
                     memory.NO_OPERATOR: -1000, memory.NO_MODULE: 3}  # fmt: skip
    assert int(use.self_increase.sum()) == int(modules.self_increase.sum()) == 110
