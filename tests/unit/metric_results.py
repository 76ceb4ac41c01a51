"""Small hand-made results with counters, for the tests of their reports."""

from __future__ import annotations

from typing import Any

from report_results import config, make_result, training_step

from cuptiprof.data.result import Result

NAN = float("nan")
GEMM, SGD = "_Z4gemmPfS_i", "sgd"
SIZES = {**config(), "device": 0, "context": 1, "stream": 7}
SIZES = {
    key: SIZES[key] for key in SIZES if key.startswith(("grid", "block")) or key in ("device", "context", "stream")
}

UNITS = {
    "achieved_occupancy": "ratio 0-1",
    "ipc": "instruction/cycle",
    "dram_read_throughput": "byte/s",
    "gld_efficiency": "%",
    "dram_utilization": "level 0-10",
    "inst_executed": "instruction",
}
DESCRIPTIONS = {"ipc": "Executed IPC", "achieved_occupancy": "Achieved Occupancy"}


def plan(**more: Any) -> dict[str, Any]:
    entries = [
        {"name": name, "unit": unit, "description": DESCRIPTIONS.get(name, ""), "expression": "x", "status": "official-direct", "inputs": []}
        for name, unit in UNITS.items()
    ]  # fmt: skip
    entries[0]["inputs"] = ["sm__warps_active.avg.pct_of_peak_sustained_active"]
    return {"strategy": "replay", "chip": "GV100", "simulated": True, "passes": 3, "metrics": entries, "groups": [],
            "notes": ["clocks were locked to base"], "sampling_interval_ns": None, **more}  # fmt: skip


def launch(number: int, correlation: int, name: str = GEMM, **more: Any) -> dict[str, Any]:
    return {**SIZES, "id": number, "kind": 1, "strategy": 1, "correlation_id": correlation, "name": name, "occurrences": 1,
            "passes": 3, "region": "step/fwd", "start": number * 1000, "end": number * 1000 + 100, **more}  # fmt: skip


def values(number: int, group: int = 1, count: int = 1, **by_name: float) -> list[dict[str, Any]]:
    return [
        {"range": number, "metric": name, "value": value, "min": value, "max": value, "spread": NAN, "count": count, "group": group}
        for name, value in by_name.items()
    ]  # fmt: skip


def counted(ranges: list[dict[str, Any]], rows_of_metrics: list[dict[str, Any]], **more: Any) -> Result:
    """``training_step()`` with counters."""
    step = training_step()
    rows = {name: list(table.rows()) for name, table in step.tables.items() if len(table)}
    return make_result(
        {**rows, "metric_ranges": ranges, "metrics": rows_of_metrics},
        {**step.metadata, "counters": plan(**more)},
        {"pool_exhausted": 3},
    )


def replayed() -> Result:
    """Two launches of one kernel with all metrics, one of another that lacks some, one region, one sample."""
    full = {"dram_read_throughput": 3e9, "gld_efficiency": 97.656, "dram_utilization": 5.2}
    return counted(
        [launch(1, 2), launch(2, 3), launch(3, 4, SGD, region="step"),
         {"id": 4, "kind": 3, "strategy": 3, "name": "step/fwd", "occurrences": 2, "start": 1000, "end": 9000, "passes": 1},
         {"id": 5, "kind": 4, "strategy": 4, "occurrences": 1, "start": 1300, "end": 101_300, "passes": 1}],
        values(1, achieved_occupancy=0.25, ipc=1.0, inst_executed=1000, **full)
        + values(2, achieved_occupancy=0.5, ipc=2.0, inst_executed=3000, **full)
        + values(3, achieved_occupancy=NAN, ipc=0.5)
        + values(4, ipc=1.5)
        + values(5, ipc=1.25),
    )  # fmt: skip


def iterated() -> Result:
    """One kernel over its two occurrences, one group of metrics each time."""
    key = {**launch(1, 0), "kind": 2, "strategy": 2, "occurrences": 2}
    other = {**key, "id": 2, "region": "elsewhere", "occurrences": 6}
    rows = [
        {"range": 1, "metric": "ipc", "value": 2.0, "min": 1.0, "max": 3.0, "spread": 1.4, "count": 2, "group": 1},
        {"range": 2, "metric": "ipc", "value": 5.0, "min": 4.0, "max": 6.0, "spread": 0.8, "count": 6, "group": 1},
        {"range": 1, "metric": "achieved_occupancy", "value": 0.5, "min": NAN, "max": NAN, "spread": NAN, "count": 2,
         "group": 0, "from_means": 1},
    ]  # fmt: skip
    return counted([key, other], rows, strategy="iterate")
