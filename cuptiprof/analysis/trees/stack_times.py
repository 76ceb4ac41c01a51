"""GPU work by the Python stack that launched it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cuptiprof.analysis.arrays.aggregate import Int64
from cuptiprof.data.result import Result
from cuptiprof.data.tables import Array


@dataclass(frozen=True)
class StackTimes:
    """What was launched from each stack.

    Attributes:
        stack: numbers of stacks, each once; 0: what no Python code launched.
        hits: launches that have a row.
        gpu_ns: sum of their durations on the GPU.
        call_ns: time of the host in the CUDA calls that launched them; 0 where calls were not recorded.
    """

    stack: Int64
    hits: Int64
    gpu_ns: Int64
    call_ns: Int64


def stack_times(result: Result, tables: tuple[str, ...] = ("kernels", "memcpys", "memsets")) -> StackTimes:
    """GPU work of these tables, added up by the stack that launched it."""
    used = [result.tables[name] for name in tables]
    stacks = np.concatenate([t.codes("stack") for t in used]).astype(np.int64)
    duration = np.concatenate([t["end"] - t["start"] for t in used])
    correlation = np.concatenate([t["correlation_id"] for t in used])
    key, which = np.unique(stacks, return_inverse=True)
    gpu = np.zeros(len(key), np.int64)
    np.add.at(gpu, which, duration)
    calls = np.zeros(len(key), np.int64)
    # A call that gave several pieces of work (a graph, say) took its time once.
    _, first = np.unique(correlation, return_index=True)
    np.add.at(calls, which[first], _call_ns(result, correlation[first]))
    return StackTimes(key, np.bincount(which, minlength=len(key)).astype(np.int64), gpu, calls)


def _call_ns(result: Result, correlation: Array) -> Int64:
    """Duration of the call of each correlation ID; the outer one where several were recorded."""
    api = result.tables["api_calls"]
    longest: dict[int, int] = {}
    wanted = np.isin(api["correlation_id"], correlation)
    for key, took in zip(
        api["correlation_id"][wanted].tolist(), (api["end"] - api["start"])[wanted].tolist(), strict=True
    ):
        longest[key] = max(took, longest.get(key, 0))
    return np.array([longest.get(key, 0) for key in correlation.tolist()], np.int64)
