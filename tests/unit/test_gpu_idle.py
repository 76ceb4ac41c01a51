"""Idle time of a GPU by cause, against numbers worked out by hand, and its sums on anything."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from conftest import DATA, trace_path
from hypothesis import given
from hypothesis import strategies as st
from report_results import make_result

import cuptiprof
from cuptiprof.analysis.arrays.intervals import length, union_of_all
from cuptiprof.analysis.utilization.gpu_idle import GpuIdle, gpu_idle, is_wait
from cuptiprof.analysis.utilization.timeline import work_by_kind
from cuptiprof.data.result import Result

US = 1_000


def kernel(start: int, end: int, number: int = 0, **more: Any) -> dict[str, Any]:
    return {"name": "compute", "start": start * US, "end": end * US, "correlation_id": number, "stream": 7, **more}


def call(start: int, end: int, number: int = 0, name: str = "cudaLaunchKernel", thread: int = 70) -> dict[str, Any]:
    return {"name": name, "start": start * US, "end": end * US, "correlation_id": number, "thread": thread}


def only(result: Result) -> GpuIdle:
    (found,) = gpu_idle(result)
    return found


def causes(found: GpuIdle) -> list[tuple[int, int, int, int]]:
    """(host, synchronisation, kernel wait, other) of each gap, us."""
    return [tuple(value // US for value in one(found, i).totals().values()) for i in range(len(found.start))]  # type: ignore[misc]


def one(found: GpuIdle, i: int) -> GpuIdle:
    """With one of the gaps only."""
    columns = {name: getattr(found, name)[i : i + 1] for name in ("start", "end", "late", "synchronisation")}
    return replace(found, **columns)


def test_each_gap_has_its_cause() -> None:
    found = only(
        make_result(
            {
                "kernels": [
                    kernel(100, 200, 1),
                    kernel(260, 300, 2),  # launched at 240, after the GPU had run dry
                    kernel(310, 400, 3),  # launched at 250: in time, soon
                    kernel(450, 500, 4),  # launched at 255: in time, late
                    kernel(600, 700, 5),  # launched at 590 after a wait from 480 on
                    kernel(720, 730),  # nobody knows
                ],
                "api_calls": [
                    call(0, 5, 1),
                    call(240, 245, 2),
                    call(250, 252, 3),
                    call(255, 257, 4),
                    call(480, 505, 9, "cudaStreamSynchronize"),
                    call(590, 595, 5),
                ],
            }
        )
    )
    # Of the last late gap (500..600) 25 us: so long it had waited.
    assert causes(found) == [(60, 0, 0, 0), (0, 0, 10, 0), (0, 0, 0, 50), (75, 25, 0, 0), (0, 0, 20, 0)]
    assert (found.first, found.last) == (100 * US, 730 * US)
    assert found.call.tolist() == [1, 2, 3, 5, -1]
    name, which, rows = next(found.work_after(np.array([0, 3])))
    assert (name, which.tolist(), rows.tolist()) == ("kernels", [0, 1], [1, 4])
    assert found.wait.tolist() == [-1, -1, -1, 4, -1] and found.late.tolist() == [True, False, False, True, False]


@pytest.mark.parametrize(("gap", "cause"), [(29, (0, 0, 29, 0)), (30, (0, 0, 0, 30))])
def test_thirty_microseconds(gap: int, cause: tuple[int, ...]) -> None:
    kernels = [kernel(10, 100, 1), kernel(100 + gap, 200, 2)]
    assert causes(only(make_result({"kernels": kernels, "api_calls": [call(0, 1, 1), call(2, 3, 2)]}))) == [cause]


def test_a_wait_counts_on_the_thread_that_launches() -> None:
    kernels = [kernel(10, 100, 1), kernel(300, 400, 2)]
    for thread, cause in ((70, (40, 160, 0, 0)), (71, (200, 0, 0, 0))):
        calls = [call(0, 1, 1), call(20, 180, 8, "cuCtxSynchronize", thread), call(290, 291, 2)]
        assert causes(only(make_result({"kernels": kernels, "api_calls": calls}))) == [cause]
    long = [call(0, 1, 1), call(2, 250, 8, "cudaMemcpy"), call(290, 291, 2)]  # more than the gap
    assert causes(only(make_result({"kernels": kernels, "api_calls": long}))) == [(0, 200, 0, 0)]
    two = [
        call(0, 1, 1),
        call(90, 105, 8, "cudaEventSynchronize"),
        call(150, 160, 9, "cudaDeviceSynchronize"),
        call(290, 291, 2),
    ]
    assert causes(only(make_result({"kernels": kernels, "api_calls": two}))) == [(175, 25, 0, 0)]


def test_which_calls_wait() -> None:
    assert all(map(is_wait, ("cudaStreamSynchronize", "cuCtxSynchronize", "cudaMemcpy", "cuMemcpyDtoH")))
    assert not any(map(is_wait, ("cudaMemcpyAsync", "cudaLaunchKernel", "cudaStreamWaitEvent", "cudaFree")))


def test_work_of_all_tables_and_gpus() -> None:
    found = gpu_idle(
        make_result(
            {
                "kernels": [kernel(10, 20, device=1), kernel(10, 20)],
                "memcpys": [
                    {"start": 15 * US, "end": 30 * US, "device": 1},
                    {"start": 50 * US, "end": 60 * US, "device": 1},
                ],
                "graph_launches": [
                    {"start": 0, "end": 1, "device": 2, "correlation_id": 5},
                    {"start": 35 * US, "end": 40 * US, "correlation_id": 6},
                ],
            }
        )
    )
    assert [(of.device, of.gap.tolist()) for of in found] == [(0, [15 * US]), (1, [20 * US]), (2, [])]
    after = [
        [(name, rows.tolist()) for name, _, rows in of.work_after(np.arange(len(of.gap))) if len(rows)] for of in found
    ]
    assert after == [[("graph_launches", [1])], [("memcpys", [1])], []]
    assert gpu_idle(make_result({})) == []


TIMES = st.integers(0, 500)


@given(
    st.lists(st.tuples(TIMES, TIMES, st.integers(0, 8), st.integers(0, 1)), min_size=1, max_size=12),
    st.lists(st.tuples(TIMES, TIMES, st.integers(0, 8), st.sampled_from(["cudaLaunchKernel", "cudaStreamSynchronize"]), st.integers(70, 71)), max_size=12),
)  # fmt: skip
def test_causes_add_up_to_the_idle_time(work: list[Any], calls: list[Any]) -> None:
    result = make_result(
        {
            "kernels": [kernel(a, a + b, number, device=device) for a, b, number, device in work],
            "api_calls": [call(a, a + b, number, name, thread) for a, b, number, name, thread in calls],
        }
    )
    adds_up(result)


@pytest.mark.parametrize(
    "trace", ["train-v100", "alexnet-a100", "simple-add", "event-sync", "sampled-nccl", "ranks/rank0"]
)
def test_causes_of_recorded_runs_add_up(trace: str) -> None:
    adds_up(cuptiprof.open(DATA / f"{trace}.json.gz" if "/" in trace else trace_path(trace)).timed())


def adds_up(result: Result) -> None:
    for found in gpu_idle(result):
        assert (
            (found.gap > 0).all() and (found.synchronisation >= 0).all() and (found.synchronisation <= found.gap).all()
        )
        parts = found.totals()
        assert min(parts.values()) >= 0 and sum(parts.values()) == int(found.gap.sum())
        busy = length(union_of_all(list(work_by_kind(result)[found.device].values())))
        assert sum(parts.values()) == found.last - found.first - busy
