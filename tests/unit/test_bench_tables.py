"""Tables of results, and verdicts against a baseline."""

from __future__ import annotations

import csv
import io
import json
import math
import sys
from typing import Any

import pytest
from bench_rows import ENVIRONMENT, counters, failed, row

from cuptiprof.bench import Roofline
from cuptiprof.bench.results.baseline import BaselineComparison, compare_results
from cuptiprof.bench.results.comparison_table import comparison_report
from cuptiprof.bench.results.measurement import notes_of
from cuptiprof.bench.results.results_table import results_report
from cuptiprof.bench.results.row import Row
from cuptiprof.bench.results.store import Results
from cuptiprof.errors import ResultError
from cuptiprof.stats.verdict import Kind

HOSTILE = '=HYPERLINK("http://x")|<script>alert(1)</script>\n`\x1b[31m'


def results(*rows: Row, **environment: Any) -> Results:
    return Results(rows, {**ENVIRONMENT, **environment})


def cells(report: Any) -> list[dict[str, str]]:
    return list(csv.DictReader(line for line in io.StringIO(report.to("csv")) if not line.startswith("#")))


def test_a_row_a_point_in_every_format() -> None:
    roof = Roofline(1e9, 1e6, 5e14, 1e12, 1e15, 3e12, 1000.0, "compute", 0.5, "given")
    report = results(
        row(2048, noise=0.0, params={"n": 256, "dtype": "f16"}, counters=counters(("ipc", 1.5, "")), roofline=roof),
        failed("MemoryError: no room", params={"n": 512, "dtype": "f16"}),
    ).report()
    one, two = report.rows
    assert one | {"notes": ""} == {
        "benchmark": "gemm", "n": 256, "dtype": "f16", "median_ns": 2048.0, "half_width_percent": 0.0, "low_ns": 2048.0,
        "high_ns": 2048.0, "min_ns": 2048.0, "p95_ns": 2048.0, "spread_percent": 0.0, "samples": 200, "strategy": "kernel", "l2": "warm", "ipc": 1.5, "flop_rate": 5e14, "byte_rate": 1e12,
        "roof_percent": 50.0, "notes": "", "error": None,
    }  # fmt: skip
    assert two["median_ns"] is None and two["error"] == "MemoryError: no room (b.py:3)"
    assert "2.0480us  0.00%      200" in report.to("text") and "SIMULATED" in report.to("text")
    assert "| gemm | 512 | f16 |" in report.to("markdown")
    assert [c["median_ns"] for c in cells(report)] == ["2048.0", ""]
    assert json.loads(report.to("json"))["rows"] == report.rows


def test_benchmarks_with_other_parameters_share_a_table() -> None:
    report = results(row(benchmark="a", params={"n": 1}), row(benchmark="b", params={"m": "x"})).report()
    assert [(r["n"], r["m"]) for r in report.rows] == [(1, None), (None, "x")]


def test_parameters_named_as_columns_keep_both() -> None:
    (only,) = results(row(params={"median_ns": 7, "benchmark": "x"}, noise=0.0)).report().rows
    assert (only["benchmark"], only["median_ns"]) == ("gemm", 7)
    assert (only["benchmark_2"], only["median_ns_2"]) == ("x", 1000.0)


def test_hostile_names_are_harmless_in_every_format() -> None:
    bad = row(
        benchmark=HOSTILE, params={HOSTILE: HOSTILE}, counters=counters((HOSTILE, 1.0, HOSTILE)), notes=(HOSTILE,)
    )
    new = results(bad, failed(HOSTILE, benchmark=HOSTILE), chip=HOSTILE, simulated=False)
    for report in (new.report(), comparison_report(compare_results(results(bad), new), new.environment)):
        for form in ("text", "markdown", "csv"):
            assert "\x1b" not in report.to(form)
        markdown = report.to("markdown")
        assert "<script>" not in markdown and "http:" not in markdown
        assert len({line.count(" | ") for line in markdown.splitlines() if line.startswith("| ")}) == 1
        for cell in (c for r in csv.reader(io.StringIO(report.to("csv"))) for c in r):
            assert not cell.startswith(("=", "@", "+", "-")) or _is_number(cell)
        json.loads(report.to("json"))
    assert "\x1b[31m" not in new.report().to("rich").replace("\x1b[0m", "").split("HYPERLINK")[1][:80]


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def test_numbers_that_no_format_can_show_are_missing() -> None:
    from cuptiprof.bench import Interval

    bad = row(params={"n": 1}, counters=counters(("ipc", float("inf"), "")))
    assert bad.measurement is not None
    object.__setattr__(bad.measurement, "interval", Interval(float("inf"), float("nan"), float("inf")))
    report = results(bad).report()
    assert report.rows[0]["median_ns"] is None and report.rows[0]["ipc"] is None
    assert report.to("text") and report.to("json") and report.to("csv") and report.to("markdown")


def test_rates_are_the_same_text_in_the_table_and_in_a_measurement() -> None:
    roof = Roofline(math.nan, 1e6, math.nan, 165.43e9, math.nan, 3.35e12, math.nan, "memory", 0.05, "bytes given")
    one = row(params={"n": 1}, roofline=roof)
    assert "165.43GB/s" in str(one.measurement) and "165.43GB/s" in results_report([one], ENVIRONMENT).to("text")


def test_the_note_of_one_point_names_it() -> None:
    rows = [row(params={"n": 1}, notes=("it synchronises",)), row(params={"n": 2})]
    assert "gemm n=1: it synchronises" in results_report(rows, ENVIRONMENT).to("text")
    said = notes_of({"f": ("a", "b"), "g": ("a",), "h": ("a", "b")})
    assert said == ["a", "f, h: b"] and notes_of({"f": ("a",)}) == ["f: a"]


def test_notes_are_said_once_and_name_their_points() -> None:
    def notes(*of: tuple[str, ...]) -> tuple[str, ...]:
        rows = [row(params={"n": n}, notes=some) for n, some in enumerate(of)]
        return results(*rows).report().content.footers

    shared, warm = "others use this GPU", "had not settled"
    assert notes(*[(shared,)] * 3) == (f"all 3 points: {shared}",)
    assert notes((shared,)) == (shared,)  # there is one point
    assert notes((), (warm,), (warm, shared)) == (f"gemm n=1, gemm n=2: {warm}", f"gemm n=2: {shared}")
    assert notes((), *[(warm,)] * 5) == (f"gemm n=1, gemm n=2, gemm n=3 and 2 more: {warm}",)


def test_no_points() -> None:
    assert "no points" in results().report().to("text")
    assert "no point is in both runs" in comparison_report(compare_results(results(), results()), {}).to("text")


def verdicts(base: Results, new: Results, **options: Any) -> dict[Any, str]:
    c = compare_results(base, new, **options)
    return {p.new.params.get("n"): p.verdict.kind.value if p.verdict else p.reason for p in c.points}


def test_verdicts_point_by_point() -> None:
    base = results(*[row(1000, params={"n": n}, seed=n) for n in range(3)], row(1000, params={"n": 3}, noise=0.3))
    new = results(
        row(1100, params={"n": 0}, seed=10),
        row(900, params={"n": 1}, seed=11),
        row(1000, params={"n": 2}, seed=12, noise=0.001),
        row(1010, params={"n": 3}, seed=13, noise=0.3),
    )
    assert verdicts(base, new) == {0: "SLOWER", 1: "FASTER", 2: "SAME", 3: "UNSURE"}
    comparison = compare_results(base, new)
    assert comparison.counts() == {"FASTER": 1, "SLOWER": 1, "SAME": 1, "UNSURE": 1}
    report = comparison_report(comparison, ENVIRONMENT)
    text = report.to("text")
    assert "4 points compared: 1 FASTER, 1 SLOWER, 1 SAME, 1 UNSURE" in text
    slower = report.rows[0]
    assert slower["verdict"] == "SLOWER" and 1.09 < slower["ratio_low"] < slower["ratio"] < slower["ratio_high"] < 1.11


def slower_by(factor: float, noise: float = 0.001) -> BaselineComparison:
    return compare_results(results(row(1000, noise=noise)), results(row(1000 * factor, seed=1, noise=noise)))


def test_failing_needs_the_whole_interval_beyond_the_limit() -> None:
    assert slower_by(1.06).failing(0.05)
    assert not slower_by(1.04).failing(0.05)  # SLOWER for certain, but not by so much
    assert slower_by(1.04).points[0].verdict.kind is Kind.SLOWER  # type: ignore[union-attr]
    wide = slower_by(1.06, noise=0.1)  # the median is beyond the limit, the interval reaches below it
    v = wide.points[0].verdict
    assert v is not None and v.low < 1.05 and not wide.failing(0.05)
    assert not slower_by(0.5).failing(0.0)


@pytest.mark.parametrize(
    "then,now,reason",
    [
        ({"chip": "A100"}, {}, "another chip: A100 (simulated) in the baseline, H100 (simulated) now"),
        ({"simulated": False}, {}, "another chip: H100 in the baseline, H100 (simulated) now"),
    ],
)
def test_other_chips_get_no_verdict_unless_forced(then: dict[str, Any], now: dict[str, Any], reason: str) -> None:
    base = results(row(1000, environment={**ENVIRONMENT, **then}), **then)
    new = results(row(1100, seed=1, environment={**ENVIRONMENT, **now}), **now)
    assert verdicts(base, new) == {None: reason}
    assert not compare_results(base, new).failing(0.0)
    assert verdicts(base, new, across_chips=True) == {None: "SLOWER"}


@pytest.mark.parametrize("field,value", [("strategy", "wall"), ("l2", "cold")])
def test_what_was_measured_differently_is_never_judged(field: str, value: str) -> None:
    base, new = results(row(1000, **{field: value})), results(row(1100))
    (reason,) = verdicts(base, new, across_chips=True).values()
    assert "measured differently" in reason and value in reason


def test_differences_of_the_environment_are_said_the_loud_ones_loudly() -> None:
    base, new = results(row(), driver_version=12080, commit="a"), results(row(), driver_version=13000, commit="b")
    header = comparison_report(compare_results(base, new), new.environment).header
    assert "NOTE: another driver version: 12080 in the baseline, 13000 now" in header
    assert "another commit: a in the baseline, b now" in header


def test_points_of_one_run_only_are_listed() -> None:
    base = results(row(params={"n": 1}), row(params={"n": 2}), failed(params={"n": 3}))
    new = results(row(params={"n": 2}), row(params={"n": 3}), row(params={"n": 4}))
    comparison = compare_results(base, new)
    assert verdicts(base, new)[3] == "it failed in the baseline"
    text = comparison_report(comparison, ENVIRONMENT).to("text")
    assert "only in the baseline: gemm n=1" in text and "only in this run: gemm n=4" in text
    assert "NO VERDICT" in text


def test_times_that_cannot_be_compared_are_said() -> None:
    zero = row(1000)
    assert zero.measurement is not None
    zero.measurement.samples[0] = 0.0
    (reason,) = verdicts(results(zero), results(row(1000))).values()
    assert reason == "base holds a time that is not above 0"


def test_dataframes_have_the_columns_of_json() -> None:
    import pandas as pd

    new = results(row(2048, noise=0.0, params={"n": 256}), failed(HOSTILE, params={"n": 512}))
    against = comparison_report(compare_results(results(row(1024, params={"n": 256})), new), new.environment)
    for report in (new.report(), against):
        frame = report.to_pandas()
        assert list(frame.columns) == list(report.rows[0]) and len(frame) == len(report.rows)
        assert frame.attrs["simulated"] is True and "SIMULATED" in frame.attrs["header"][0]
    frame = new.to_pandas()
    assert frame["median_ns"].dtype == "float64" and frame["median_ns"].isna().tolist() == [False, True]
    assert frame["error"][1] == f"{HOSTILE} (b.py:3)"
    assert results().to_pandas().empty and isinstance(results().to_pandas(), pd.DataFrame)


def test_a_frame_says_that_pandas_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ResultError, match=r"pip install 'cuptiprof\[pandas\]'"):
        results(row()).to_pandas()


def test_what_ran_on_the_host_alone_names_no_gpu() -> None:
    report = results(row(), chip="", simulated=False, cpu="EPYC").report()
    assert report.header == ("host: EPYC",)
