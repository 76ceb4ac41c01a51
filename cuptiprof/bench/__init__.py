"""The benchmark harness: times and counters of a function that one can trust.

``cuptiprof.bench(function)`` measures one function. The module itself is that function: what else it has (strategies, stopping rules)
is imported from it, ``from cuptiprof.bench import Event``.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

from cuptiprof.bench.case import Case, skip
from cuptiprof.bench.compare import Comparison, compare
from cuptiprof.bench.measure import bench
from cuptiprof.bench.options import Options, SweepOptions
from cuptiprof.bench.results.baseline import compare_results
from cuptiprof.bench.results.comparison_table import comparison_report
from cuptiprof.bench.results.history import History, read_history
from cuptiprof.bench.results.measurement import Measurement
from cuptiprof.bench.results.parts import CounterValue, Discard, Interval, KernelTime, Roofline
from cuptiprof.bench.results.store import Results, read_results
from cuptiprof.bench.sampling import Cpu, Event, Graph, Kernel, Manual, Strategy, Wall
from cuptiprof.bench.sweep.benchmark import Benchmark, benchmark
from cuptiprof.bench.sweep.run_benchmarks import run_benchmarks
from cuptiprof.stats.stopping import Count, RelativeHalfWidth, Rule, Stop, TimeLimit, default_rule
from cuptiprof.stats.verdict import Verdict, judge, judge_pairs

__all__ = [
    "Benchmark",
    "Case",
    "Comparison",
    "Count",
    "CounterValue",
    "Cpu",
    "Discard",
    "Event",
    "Graph",
    "History",
    "Interval",
    "Kernel",
    "KernelTime",
    "Manual",
    "Measurement",
    "Options",
    "RelativeHalfWidth",
    "Results",
    "Roofline",
    "Rule",
    "Stop",
    "Strategy",
    "SweepOptions",
    "TimeLimit",
    "Verdict",
    "Wall",
    "bench",
    "benchmark",
    "compare",
    "compare_results",
    "comparison_report",
    "default_rule",
    "judge",
    "judge_pairs",
    "read_history",
    "read_results",
    "run_benchmarks",
    "skip",
]


class _Bench(ModuleType):
    """A module that can be called, so that ``cuptiprof.bench`` is the function in whatever order things are imported."""

    def __call__(self, *args: Any, **kwargs: Any) -> Measurement:
        return bench(*args, **kwargs)


sys.modules[__name__].__class__ = _Bench
