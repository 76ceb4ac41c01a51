"""Counter values as text."""

from __future__ import annotations

import pytest

from cuptiprof.metrics import format_value, resolve
from cuptiprof.text.metric_units import form_of, format_level, format_metric, infer_unit, scale_metric


@pytest.mark.parametrize(
    "value,unit,text",
    [
        (2.8092e9, "byte/s", "2.8092GB/s"), (0, "byte/s", "0.0000B/s"), (97.656, "%", "97.66%"), (0.24989, "ratio", "0.249890"),
        (5.2, "level 0-10", "Mid (5)"), (1024.0, "transaction (32 B)", "1024"), (1.5, "instruction/cycle", "1.500000"),
        (1234.5, "byte", "1234"), (1.5, "request", "1.500000"), (696_980.0, "ns", "696.98us"), (0.001, "second", "1.0000ms"),
        (1.755e9, "gpc_cycle/s", "1.755GHz"), (2e12, "flop/s", "2.0000TFLOP/s"), (-1.5e9, "byte/s", "-1.5000GB/s"),
        (12.0, "warp", "12.000000"), (1e300, "byte/s", "1e+300byte/s"), (1e300, "count", "1e+300"), (-5.0, "level 0-10", "-5"),
        (3e9, "dram_cycle/second", "3GHz"), (7.0, "", "7.000000"), (50.0, "% (guided-analysis)", "50.00%"),
    ],
)  # fmt: skip
def test_values(value: float, unit: str, text: str) -> None:
    assert format_metric(value, unit) == text


def test_levels() -> None:
    names = [format_level(float(i)) for i in range(11)]
    assert names == ["Idle (0)", "Low (1)", "Low (2)", "Low (3)", "Mid (4)", "Mid (5)", "Mid (6)", "High (7)", "High (8)", "High (9)", "Max (10)"]  # fmt: skip


def test_units_of_perfworks_names() -> None:
    assert infer_unit("sm__throughput.avg.pct_of_peak_sustained_elapsed", "") == "%"
    assert infer_unit("l1tex__t_sector_hit_rate.pct", "") == "%"
    assert infer_unit("dram__bytes.sum.per_second", "") == "byte/s"
    assert infer_unit("sm__inst_executed.sum", "") == "count" and infer_unit("a.ratio", "") == ""
    assert infer_unit("a.pct", "mine") == "mine"


def test_scaled_numbers_and_units_go_apart() -> None:
    assert scale_metric(696_980.0, "ns") == ("696.98", "us") and scale_metric(97.656, "%") == ("97.66", "%")
    assert scale_metric(0.5, "instruction/cycle") == ("0.500000", "instruction/cycle")


def test_as_the_catalogue_writes_them() -> None:
    """The report knows a unit, the catalogue a kind; nvprof's metrics look the same from both."""
    metrics = resolve("all", "GH100")
    assert len(metrics) > 100
    for metric in metrics:
        value = 7.0 if metric.kind == "utilization" else 12345.0
        assert format_metric(value, metric.unit) == format_value(metric, value), (
            metric.name,
            metric.unit,
            form_of(metric.unit),
        )
