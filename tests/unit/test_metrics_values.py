"""Values as nvprof prints them."""

from __future__ import annotations

import json
import math

import pytest

from cuptiprof.metrics import format_kind, format_value, resolve


@pytest.mark.parametrize(
    "name,value,text",
    [
        ("achieved_occupancy", 0.4963715, "0.496372"),
        ("ipc", 2.0, "2.000000"),
        ("inst_executed", 1234567.0, "1234567"),
        ("dram_read_transactions", 1e15, "1000000000000000"),
        ("gld_efficiency", 100.0, "100.00%"),
        ("gld_efficiency", 12.345, "12.35%"),
        ("dram_read_throughput", 0.0, "0.0000B/s"),
        ("dram_read_throughput", 3.0e9, "3.0000GB/s"),
        ("dram_utilization", 0.0, "Idle (0)"),
        ("dram_utilization", 0.4, "Idle (0)"),
        ("dram_utilization", 0.6, "Low (1)"),
        ("dram_utilization", 3.4, "Low (3)"),
        ("dram_utilization", 5.0, "Mid (5)"),
        ("dram_utilization", 8.9, "High (9)"),
        ("dram_utilization", 10.2, "Max (10)"),
        ("roofline_fp32_achieved", 3.12e14, "312.00TFLOP/s"),
        ("sm__cycles_elapsed.avg.per_second", 1.98e9, "1.98e+09 cycle/s"),
        ("sm__cycles_active.avg", 12.5, "12.500000"),
        ("sm__warps_active.avg.pct_of_peak_sustained_active", 71.2, "71.20%"),
        ("dram__bytes.sum.per_second", 2048.0, "2.0480KB/s"),
        ("ipc", math.nan, "-"),
        ("ipc", math.inf, "inf"),
    ],
)
def test_format(name: str, value: float, text: str) -> None:
    (metric,) = resolve(name, "GH100")
    assert format_value(metric, value) == text


def test_a_metric_in_metadata_formats_as_itself() -> None:
    for metric in resolve("all", "GH100"):
        saved = json.loads(json.dumps(metric.to_dict()))
        assert format_kind(saved["kind"], saved["unit"], 7.25) == format_value(metric, 7.25)
        assert saved["inputs"] == list(metric.inputs) and saved["expression"] == metric.expression
    assert format_kind("no such kind", "", 0.5) == "0.500000"
