"""Reports of hardware counters over hand-made results."""

from __future__ import annotations

import csv
import io
import json
import re
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from metric_results import GEMM, NAN, counted, iterated, launch, plan, replayed, values
from report_results import HOSTILE, make_result

import cuptiprof
from cuptiprof.analysis.counter_values.counter_record import CounterRecord
from cuptiprof.analysis.counter_values.kernel_counters import join_keys, join_launches
from cuptiprof.data.result import Result
from cuptiprof.data.tables import Strings, Table

GOLDEN = Path(__file__).parents[1] / "golden"
VIEWS = ["metrics", "events", "metrics-wide", "metrics-long", "sections", "memory-path", "priorities", "samples"]
FORMS = ["text", "rich", "markdown", "csv", "json"]


@pytest.mark.parametrize("view", ["metrics", "events", "sections", "memory-path", "priorities"])
def test_golden(view: str) -> None:
    """The files were checked by hand against the rows of metric_results.replayed."""
    assert replayed().report(view, limit=2).to("text") == (GOLDEN / f"counted.{view}.txt").read_text()


def test_metrics_by_kernel_are_nvprofs() -> None:
    rows = replayed().report("metrics").rows
    ipc = {(row["kind"], row["kernel"]): row for row in rows if row["metric"] == "ipc"}
    gemm = ipc["kernel", "gemm(float*, float*, int)"]
    assert (gemm["invocations"], gemm["min"], gemm["max"], gemm["avg"]) == (2, 1.0, 2.0, 1.5)
    assert gemm["description"] == "Executed IPC" and gemm["device"] == "Tesla V100 (0)"
    assert ipc["region", "step/fwd"]["avg"] == 1.5 and ipc["samples", ""]["avg"] == 1.25
    assert not any(row["kernel"] == "sgd" and row["metric"] == "achieved_occupancy" for row in rows)  # NaN: no value


def test_means_over_occurrences_are_weighted() -> None:
    (ipc,) = [row for row in iterated().report("metrics").rows if row["metric"] == "ipc"]
    assert (ipc["invocations"], ipc["min"], ipc["max"]) == (8, 1.0, 6.0)
    assert ipc["avg"] == pytest.approx((2 * 2.0 + 6 * 5.0) / 8)


def test_invocations_of_sampled_kernels_are_launches_not_samples() -> None:
    kernel = {**launch(1, 0), "kind": 2, "strategy": 4, "occurrences": 3}
    samples = [{"id": i, "kind": 4, "strategy": 4, "occurrences": 1} for i in (2, 3)]
    r = counted([kernel, *samples], values(1, count=500, ipc=1.0) + values(2, ipc=1.0) + values(3, ipc=3.0))
    assert [(row["kind"], row["invocations"], row["avg"]) for row in r.report("metrics").rows] == [
        ("kernel", 3, 1.0),
        ("samples", 2, 2.0),
    ]


def test_mean_of_equal_values_is_that_value() -> None:
    r = counted([launch(i, i) for i in range(1, 8)], [v for i in range(1, 8) for v in values(i, ipc=0.1)])
    assert r.report("metrics").rows[0]["avg"] == 0.1


def test_events_have_a_total() -> None:
    (row,) = replayed().report("events").rows
    assert (row["event"], row["invocations"], row["avg"], row["total"]) == ("inst_executed", 2, 2000, 4000)
    entries = [
        {"name": "ipc", "category": "event", "unit": "instruction"},
        {"name": "inst_executed", "unit": "instruction"},
    ]
    chosen = counted([launch(1, 2)], values(1, ipc=3, inst_executed=4), metrics=entries)
    assert [row["event"] for row in chosen.report("events").rows] == ["ipc"]


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("form", ["text", "markdown", "csv"])
def test_headers_say_where_counters_come_from(view: str, form: str) -> None:
    text = replayed().report(view).to(form).replace("\\", "")
    assert (
        "SIMULATED" in text and "strategy replay, chip GV100, 3 passes" in text and "clocks were locked to base" in text
    )


def test_simulated_counters_of_a_run_that_does_not_say_so() -> None:
    r = make_result(
        {"metric_ranges": [launch(1, 2)]}, {"counters": {"simulated": True, "sampling_interval_ns": 20_000}}
    )
    assert "SIMULATED counters" in str(r.summary()) and "a sample every 20 us" in str(r.summary())


def test_wide_table() -> None:
    report = replayed().metrics_table()
    rows = report.rows
    assert [row["kind"] for row in rows] == ["launch", "launch", "launch", "region"]  # samples are a view of their own
    assert rows[0]["grid"] == (4, 106, 1) and rows[0]["region"] == "step/fwd" and rows[3]["grid"] is None
    assert [row["ipc"] for row in rows] == [1.0, 2.0, 0.5, 1.5]
    assert [row["achieved_occupancy"] for row in rows] == [0.25, 0.5, None, None]
    assert json.loads(report.to("json"))["units"]["dram_read_throughput"] == "byte/s"
    assert [key for key in rows[0] if key in ("ipc", "achieved_occupancy")] == ["achieved_occupancy", "ipc"]  # as asked
    assert len(replayed().metrics_table(limit=1).rows) == 1


def test_long_table() -> None:
    rows = replayed().metrics_table(wide=False).rows
    assert len(rows) == 6 + 6 + 2 + 1 + 1
    first = {
        k: rows[0][k] for k in ("id", "metric", "value", "unit", "count", "group", "strategy", "spread", "from_means")
    }
    assert first == {"id": 1, "metric": "achieved_occupancy", "value": 0.25, "unit": "ratio 0-1", "count": 1, "group": 1,
                     "strategy": "replay", "spread": None, "from_means": "no"}  # fmt: skip
    assert [row["value"] for row in rows if row["id"] == 3] == [None, 0.5]
    marked = iterated().metrics_table(wide=False)
    assert [row["from_means"] for row in marked.rows] == ["yes", "no", "no"] and "Group 0" in str(marked)


def test_a_metric_may_be_called_name() -> None:
    r = counted([launch(1, 2)], values(1, name=1.5, start_ns=2.5))
    (row,) = r.metrics_table().rows
    assert row["name"] == "gemm(float*, float*, int)" and row["metric name"] == 1.5
    assert r.report("samples").rows == []


def test_samples() -> None:
    (row,) = replayed().report("samples").rows
    assert (row["start_ns"], row["duration_ns"], row["ipc"]) == (1000, 100_000, 1.25)
    assert "achieved_occupancy" not in row  # no sample has it


def sampled(count: int, first: int = 0) -> Result:
    """Samples of 10 us each from `first` on; one kernel from 1 to 3 ms."""
    rows = [
        {
            "id": i + 1,
            "kind": 4,
            "strategy": 4,
            "occurrences": 1,
            "start": first + 10_000 * i,
            "end": first + 10_000 * (i + 1),
        }
        for i in range(count)
    ]
    each = [value for i in range(count) for value in values(i + 1, ipc=float(i % 2), inst_executed=2.0)]
    kernels = [{"name": GEMM, "start": 1_000_000, "end": 3_000_000}]
    return make_result({"metric_ranges": rows, "metrics": each, "kernels": kernels}, {"counters": plan()})


def test_samples_are_binned_from_the_first_activity_on() -> None:
    """A session samples from its start, the program's imports included: that was 20 s of rows with negative times."""
    report = sampled(1000, first=-5_000_000).report("samples")
    rows = report.rows
    assert len(rows) == 50 and sum(row["samples"] for row in rows) == 200
    assert rows[0]["start_ns"] == 0 and rows[-1]["start_ns"] + rows[-1]["duration_ns"] == 2_000_000
    assert {row["ipc"] for row in rows} == {0.5}  # the mean
    assert sum(row["inst_executed"] for row in rows) == 400  # of what counts, the sum
    text = report.to("text")
    assert "600 samples (6.0000ms) from before the first activity and 200 from after the last" in text
    assert "200 samples in 50 rows" in text
    few = sampled(1000, first=-5_000_000).report("samples", limit=7).rows
    assert len(few) == 7 and sum(row["samples"] for row in few) == 200
    assert sampled(1000, first=-5_000_000).report("samples", limit=0).rows == []
    assert len(sampled(200).report("metrics-long").rows) == 400


def test_samples_of_an_idle_device_are_all_there_is() -> None:
    assert sum(row["samples"] for row in sampled(90, first=5_000_000).report("samples").rows) == 90


def test_memory_path_has_sixteen_arrows() -> None:
    rows = replayed().report("memory-path", limit=1).rows
    assert [n for i, n in enumerate(r["arrow"] for r in rows) if i == 0 or rows[i - 1]["arrow"] != n] == list(
        range(1, 17)
    )
    measured = {row["metric"]: row["value"] for row in rows if row["value"] is not None}
    assert measured == {"dram_read_throughput": 3e9, "gld_efficiency": pytest.approx(97.656)}
    new_name = counted([launch(1, 2)], values(1, local_hit_rate=50.0)).report("memory-path").rows
    assert [(r["arrow"], r["value"]) for r in new_name if r["metric"] == "local_hit_rate"] == [(11, 50.0)]


def test_priorities_rank_by_time_without_occupancy() -> None:
    rows = replayed().report("priorities").rows
    assert [row["rank"] for row in rows] == [100, 1, 1]
    gemm = rows[0]
    assert (gemm["instances"], gemm["time_ns"], gemm["occupancy_percent"]) == (2, 22_345, 37.5)
    assert gemm["weight_ns"] == pytest.approx(22_345 * (1 - 0.375)) and gemm["occupancy_from"] == "measured"
    assert rows[1]["occupancy_from"] == "theoretical"
    assert gemm["name"] == "gemm(float*, float*, int)"


def test_communication_is_not_ranked() -> None:
    kernels = [
        {"name": "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "start": 0, "end": 9_000},
        {"name": "void two_shot_all_reduce<float>(float*)", "start": 9_000, "end": 9_500},
        {"name": GEMM, "start": 9_500, "end": 10_000},
    ]
    report = make_result({"kernels": kernels}).report("priorities")
    assert [(row["rank"], row["name"], row["percent"]) for row in report.rows] == [
        (100, "gemm(float*, float*, int)", 100.0)
    ]
    assert "Not ranked: 2 kernels that communicate (9.5000us, 95.00% of kernel time)" in report.to("text")
    alone = make_result({"kernels": kernels[:1]}).report("priorities")
    assert not alone.rows and "No kernels that compute" in alone.to("text")


def test_kernels_have_counters_as_columns() -> None:
    r = replayed()
    by_correlation = dict(zip(r.kernels["correlation_id"].tolist(), r.kernels["ipc"].tolist(), strict=True))
    assert (
        by_correlation[2] == 1.0
        and by_correlation[3] == 2.0
        and by_correlation[4] == 0.5
        and np.isnan(by_correlation[1])
    )
    assert r.kernels["ipc"].dtype == np.float64 and "ipc" in r.kernels and "nope" not in r.kernels
    few = r.filter("gemm").kernels
    assert few["ipc"].tolist() == [1.0, 2.0]
    assert r.counters["ipc"].tolist() == [1.0, 2.0, 0.5, 1.5, 1.25]
    with pytest.raises(KeyError, match="ipc"):
        r.counters["nope"]
    with pytest.raises(KeyError):
        r.kernels["nope"]


def test_kernels_have_the_means_of_their_occurrences() -> None:
    kernels = iterated().kernels
    found = dict(zip(kernels["correlation_id"].tolist(), kernels["ipc"].tolist(), strict=True))
    assert found[2] == found[3] == 2.0 and np.isnan(found[1]) and np.isnan(found[4])


def test_graph_nodes_share_a_correlation_id_but_not_counters() -> None:
    kernels = [{"name": n, "start": i, "end": i + 1, "correlation_id": 9} for i, n in enumerate(("a", "b"))]
    r = make_result({"kernels": kernels, "metric_ranges": [launch(1, 9, "b")], "metrics": values(1, ipc=1.0)})
    assert np.isnan(r.kernels["ipc"][0]) and r.kernels["ipc"][1] == 1.0


def test_saved_runs_carry_counters(tmp_path: Path) -> None:
    r = replayed()
    r.save(tmp_path / "run")
    again = cuptiprof.open(tmp_path / "run")
    for view in VIEWS:
        assert again.report(view).to("json") == r.report(view).to("json")
    assert np.array_equal(again.kernels["ipc"], r.kernels["ipc"], equal_nan=True)


def hostile() -> Result:
    name = HOSTILE + "\x1b]0;t\x07"
    ranges = [
        launch(1, 1, name, region=name),
        {**launch(2, 0, name), "kind": 3},
        {"id": 3, "kind": 4},
        {"id": 4, "kind": 77},
    ]
    entries = [{"name": name, "unit": name, "description": name, "inputs": [name, 7, None]}]
    metrics = [{**v, "metric": name} for i in (1, 2, 3, 4) for v in values(i, x=1.5)]
    metrics += [{**metrics[0], "range": 99}, {**metrics[0], "value": float("inf"), "min": -1e300, "max": 1e300}]
    return make_result(
        {"kernels": [{"name": name, "start": 0, "end": 10, "correlation_id": 1}], "metric_ranges": ranges, "metrics": metrics,
         "devices": [{"device": 0, "name": name, "compute_capability_major": 9}]},
        {"counters": {"strategy": name, "chip": name, "notes": [name, 3], "metrics": entries}},
    )  # fmt: skip


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("form", FORMS)
def test_hostile_names_stay_text(view: str, form: str) -> None:
    text = hostile().report(view, demangle=False).to(form, width=300)
    if form == "rich":
        text = re.sub(r"\x1b\[[0-9;]*m", "", text)
    assert not re.search("[\x00-\x09\x0b\x0c\x0e-\x1f\x7f-\x9f\u202e]", text)
    if form == "markdown":
        assert "<b>" not in text and "https://" not in text
    if form == "csv":
        for row in csv.reader(line for line in text.splitlines() if not line.startswith("#")):
            assert not any(cell.startswith(("=", "+", "-c", "@")) for cell in row)
    if form == "json":
        json.loads(text)


@pytest.mark.parametrize(
    "damage",
    [None, 7, [], "x", {}, {"metrics": 3}, {"metrics": [3, {}, {"name": 4}]}, {"notes": "x"}, {"passes": -1},
     {"passes": 10**400}, {"passes": True}, {"sampling_interval_ns": "x"}, {"strategy": {}, "chip": 5, "simulated": "yes"}],
)  # fmt: skip
def test_damaged_metadata_is_left_out(damage: Any) -> None:
    r = make_result({"metric_ranges": [launch(1, 2)], "metrics": values(1, ipc=1.0)}, {"counters": damage})
    for view in VIEWS:
        assert str(r.report(view))
    assert r.metrics_table().rows[0]["ipc"] == 1.0
    plan = CounterRecord.of({"counters": damage})
    assert plan is None or (plan.passes is None and not plan.simulated and not plan.notes)


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("form", FORMS)
def test_ranges_without_values_and_values_without_ranges(view: str, form: str) -> None:
    assert make_result({"metric_ranges": [launch(1, 2)]}).report(view).to(form)
    assert make_result({"metrics": values(7, ipc=1.0)}).report(view).to(form)


def test_later_values_win_and_infinite_ones_are_missing() -> None:
    r = counted([launch(1, 2), launch(2, 3)], values(1, ipc=1.0) + values(1, ipc=3.0) + values(2, ipc=float("inf")))
    assert r.counters["ipc"][0] == 3.0 and np.isnan(r.counters["ipc"][1])


@pytest.mark.parametrize("view", ["metrics", "metrics-wide", "metrics-long", "priorities"])
def test_csv_is_read_by_pandas(view: str) -> None:
    report = replayed().report(view)
    frame = pd.read_csv(io.StringIO(report.to("csv")), comment="#")
    assert len(frame) == len(report.rows)
    for key in ("ipc", "achieved_occupancy", "value", "min", "avg", "invocations"):
        if key in frame:
            assert [None if pd.isna(v) else v for v in frame[key]] == [row[key] for row in report.rows]


def test_markdown_tables_are_whole() -> None:
    for view in VIEWS:
        lines = replayed().report(view).to("markdown").splitlines()
        tables = [i for i, line in enumerate(lines) if line.startswith(("|--:", "|:--"))]
        assert tables, view
        for i in tables:
            rows = lines[i + 1 : i + 1 + lines[i + 1 :].index("")]
            assert rows and {row.count("|") for row in rows} == {lines[i - 1].count("|")} == {lines[i].count("|")}


def test_rich_shows_headings_and_messages() -> None:
    text = re.sub(r"\x1b\[[0-9;]*m", "", replayed().report("sections").to("rich", width=200))
    assert "Section: Occupancy" in text and "AchievedOccupancy:" in text


def big(n: int) -> Result:
    strings = Strings()
    ids = np.arange(1, n // 10 + 1, dtype=np.uint32)
    ranges = {"id": ids, "kind": np.ones(len(ids), np.uint8), "correlation_id": ids, "start": ids.astype(np.int64),
              "name": np.array([strings.code(f"kernel_{i}") for i in range(40)], np.uint32)[ids % 40],
              "occurrences": np.ones(len(ids), np.uint32)}  # fmt: skip
    codes = np.array([strings.code(f"metric_{i}") for i in range(10)], np.uint32)
    value = np.random.default_rng(1).random(n)
    metrics = {"range": np.repeat(ids, 10), "metric": np.tile(codes, len(ids)), "value": value, "min": value, "max": value,
               "count": np.ones(n, np.uint32)}  # fmt: skip
    kernels = {"name": ranges["name"], "correlation_id": ids, "start": ranges["start"], "end": ranges["start"] + 5}
    made = {"metric_ranges": ranges, "metrics": metrics, "kernels": kernels}
    tables = {name: Table.from_columns(name, columns, strings) for name, columns in made.items()}
    tables["launch_configs"] = Table.from_columns("launch_configs", {"grid_x": [1], "block_x": [32]}, strings)
    return Result(tables)


@pytest.mark.parametrize("view", ["metrics", "events", "metrics-wide", "metrics-long", "sections", "priorities"])
def test_a_hundred_thousand_values_take_seconds(view: str) -> None:
    r = big(100_000)
    start = time.process_time()
    report = r.report(view)
    assert report.to("text") and report.to("csv") and report.to("json") and report.to("rich", width=200)
    assert time.process_time() - start < 15  # about 1 to 5 s of the processor, however many share it


def test_aggregates_are_exact() -> None:
    r = big(100_000)
    rows = {(row["kernel"], row["metric"]): row for row in r.report("metrics").rows}
    assert len(rows) == 400
    values_of = r.metrics["value"].reshape(-1, 10)
    mine = values_of[r.metric_ranges["id"] % 40 == 7]
    row = rows["kernel_7", "metric_3"]
    assert (row["min"], row["max"], row["invocations"]) == (mine[:, 3].min(), mine[:, 3].max(), 250)
    assert row["avg"] == pytest.approx(mine[:, 3].mean(), rel=1e-12)
    assert np.array_equal(r.kernels["metric_3"], values_of[:, 3])


def test_nothing_counted_costs_nothing() -> None:
    r = make_result({"kernels": [{"name": GEMM, "start": 0, "end": 1}]})
    assert r.kernels.counters is None and "ipc" not in r.kernels and list(r.counters) == []
    assert "No counters were recorded." in str(r.metrics_table()) and NAN != NAN


def test_joins_are_those_of_a_loop() -> None:
    random = np.random.default_rng(11)
    for _ in range(30):
        strings = Strings(["", "a", "b", "c"])
        axes = [f"{what}_{axis}" for what in ("grid", "block") for axis in "xyz"]

        def some(n: int, top: int) -> np.ndarray[Any, np.dtype[np.int64]]:
            return random.integers(0, top, n)

        n, m, configs = int(random.integers(0, 40)), int(random.integers(0, 12)), 4
        sizes = {axis: some(configs, 2) for axis in axes}
        kernels = Table.from_columns("kernels", {"name": some(n, 4), "region": some(n, 3), "device": some(n, 2), "config": some(n, configs),
                                                 "correlation_id": some(n, 12)}, strings, rows=n)  # fmt: skip
        kernels.configs = Table.from_columns("launch_configs", sizes, strings)
        ranges = Table.from_columns("metric_ranges", {"name": some(m, 5) % 4, "region": some(m, 3), "device": some(m, 2), "kind": some(m, 5),
                                                      "correlation_id": some(m, 12), **{axis: some(m, 2) for axis in axes}}, strings, rows=m)  # fmt: skip
        columns = ["device", "name", "region", *axes]
        keys = [
            tuple(int(ranges[c][i]) if c not in ("name", "region") else int(ranges.codes(c)[i]) for c in columns)
            for i in range(m)
        ]
        by_key, by_launch = join_keys(ranges, kernels), join_launches(ranges, kernels)
        correlations = kernels["correlation_id"].tolist()
        for k in range(n):
            key = tuple(
                int(kernels[c][k]) if c not in ("name", "region") else int(kernels.codes(c)[k]) for c in columns
            )
            assert by_key[k] == next((i for i in range(m) if ranges["kind"][i] == 2 and keys[i] == key), -1)
            own = correlations[k]
            launch_row = next(
                (i for i in range(m) if ranges["kind"][i] == 1 and own and ranges["correlation_id"][i] == own), -1
            )
            if launch_row >= 0 and correlations.count(own) > 1 and ranges["name"][launch_row] != kernels["name"][k]:
                launch_row = -1
            assert by_launch[k] == launch_row
