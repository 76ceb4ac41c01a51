"""Fleet analyses: against what NumPy makes of the same runs, and by Spark what DuckDB says."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from job_tables import tables_of

import cuptiprof
from benchmarks.generated_job import GeneratedJob
from cuptiprof.analysis.arrays.intervals import length, union_of
from cuptiprof.analysis.collectives.communication_waits import communication_waits
from cuptiprof.analysis.work.communication import communicating
from cuptiprof.cli import main
from cuptiprof.errors import CuptiprofError, ResultError
from cuptiprof.job.engines import RankedTables, open_tables
from cuptiprof.job.fleet import (
    ANALYSES,
    answer,
    collective_calls,
    collectives,
    gpu_time,
    kernel_medians,
    kernels_by_name,
    step_series,
)
from cuptiprof.job.job_report import JOB_VIEWS  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("jobs") / "job"
    GeneratedJob(ranks=16, steps=10, gpu={3: 1.6}, seed=5).save(folder)
    return folder


def test_sums_are_those_of_the_runs(folder: Path) -> None:
    job = cuptiprof.open_job(folder)
    tables = open_tables(job)
    runs = list(job)
    by_name = {row["name"]: row for row in kernels_by_name(tables).to_pyarrow().to_pylist()}
    for name, row in by_name.items():
        of_rank = [int((r.kernels["end"] - r.kernels["start"])[r.kernels["name"] == name].sum()) for r in runs]
        assert (row["total_ns"], row["most_ns"], row["least_ns"]) == (sum(of_rank), max(of_rank), min(of_rank))
        assert row["slowest_rank"] == int(np.argmax(of_rank)) and row["ranks"] == 16
        assert row["imbalance"] == pytest.approx(max(of_rank) * 16 / sum(of_rank))
    assert by_name["gemm"]["slowest_rank"] == 3
    for row, run in zip(gpu_time(tables).to_pyarrow().to_pylist(), runs, strict=True):
        talks = communicating(run.kernels)
        start, end = run.kernels["start"], run.kernels["end"]
        lengths = [length(union_of(start[m], end[m])) for m in (~talks, talks, np.ones(len(start), bool))]
        assert [row["computation_ns"], row["communication_ns"]] == lengths[:2]
        assert row["overlap_ns"] == lengths[0] + lengths[1] - lengths[2]
        assert row["idle_ns"] == int(end.max() - start.min()) - lengths[2]


def test_overlapping_kernels_count_once() -> None:
    job = GeneratedJob(ranks=8, steps=3)
    tables = tables_of(job)
    k = tables["kernels"]
    twice = tables | {"kernels": k.union(k.mutate(start=k.start + 10, end=k.end + 10))}
    one, two = gpu_time(tables).to_pyarrow(), gpu_time(twice).to_pyarrow()
    assert [b - a for a, b in zip(one["span_ns"].to_pylist(), two["span_ns"].to_pylist(), strict=True)] == [10] * 8
    more = np.array(two["computation_ns"].to_pylist()) - np.array(one["computation_ns"].to_pylist())
    assert (more == 10 * 3 * 8).all()  # each of 8 kernels of 3 steps is 10 ns longer


def test_ranks_asked_by_and_by_are_those_asked_at_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tables = open_tables(cuptiprof.open_job(folder))
    assert isinstance(tables, RankedTables)
    monkeypatch.setattr("cuptiprof.job.engines._KERNELS_AT_ONCE", 900)
    assert [len(some["kernels"].to_pyarrow()) for some in tables.by_ranks()] == [900, 700]  # 100 a rank
    for ask in (gpu_time, kernel_medians):
        assert answer(ask, tables).to_pylist() == ask(tables).to_pyarrow().to_pylist()
    assert len(answer(gpu_time, tables)) == 16


def test_transfer_is_the_shortest_of_the_ranks(folder: Path) -> None:
    """As the view of runs that are opened one by one has it."""
    job = cuptiprof.open_job(folder)
    rows = collectives(open_tables(job)).to_pyarrow().to_pylist()
    waits = [wait for rank in communication_waits(list(job)) for wait in rank]
    assert sum(r["transfer_ns"] for r in rows) == sum(w.transfer or 0 for w in waits)
    assert sum(r["waiting_ns"] for r in rows) == sum(w.synchronising or 0 for w in waits)
    assert all(r["unmatched"] == 0 for r in rows)


def test_damaged_files_are_left_out_and_said(folder: Path, tmp_path: Path) -> None:
    GeneratedJob(ranks=8, steps=2).save(tmp_path / "job")
    part = tmp_path / "job" / "rank-5.cuptiprof" / "kernels" / "rank=5" / "part-0.parquet"
    part.write_bytes(part.read_bytes()[:-100])
    other = tmp_path / "job" / "rank-6.cuptiprof" / "collectives" / "rank=6" / "part-0.parquet"
    other.unlink()
    job = cuptiprof.open_job(tmp_path / "job")
    tables = open_tables(job)
    assert job.missing == [5, 6] and "kernels: damaged" in job.damaged["rank-5.cuptiprof"]
    assert "0 rows, and run.json says 4" in job.damaged["rank-6.cuptiprof"]
    assert sorted({r["rank"] for r in gpu_time(tables).to_pyarrow().to_pylist()}) == [0, 1, 2, 3, 4, 7]
    assert {r["unmatched"] for r in collectives(tables).to_pyarrow().to_pylist() if r["group_size"] == 8} == {12}


def test_a_job_without_collectives_and_steps(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from report_results import training_step

    for rank in range(2):
        result = training_step()
        result.metadata |= {"rank": rank, "distributed": {"rank": rank, "world_size": 3}}
        result.save_rank(tmp_path / "job")
    assert main(["job", str(tmp_path / "job"), *(w for v in JOB_VIEWS for w in ("--view", v)), "--format", "text"]) == 0
    out = capsys.readouterr().out
    assert "rank 2 of 3 is missing" in out and "No rank has collectives" in out and "No rank marked steps" in out
    assert "Clocks were not aligned" in out and "No clocks could be aligned" in out


def test_the_command(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["job", str(folder), "--limit", "1", "--format", "text"]) == 0
    out = capsys.readouterr().out
    assert "SIMULATED" in out and "16 ranks of 16 on 2 hosts" in out and "slow GPU" in out and "15 more rows" in out
    assert main(["job", str(folder), "--view", "steps", "--format", "json", "--memory", "1GB"]) == 0
    assert len(json.loads(capsys.readouterr().out)["rows"]) == 16
    assert main(["job", str(folder), "--engine", "dukdb"]) == 1
    assert "no such engine" in capsys.readouterr().err
    assert main(["job", str(folder), "--memory", "lots'; DROP"]) == 1
    assert "no such amount" in capsys.readouterr().err
    assert main(["job", str(folder / "rank-0.cuptiprof")]) == 1
    assert "cuptiprof.open opens it" in capsys.readouterr().err


def test_an_engine_without_memory_says_so(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["job", str(folder), "--memory", "1MB"]) == 1
    assert "the engine could not answer: Out of Memory" in capsys.readouterr().err


def test_nothing_left(tmp_path: Path) -> None:
    GeneratedJob(ranks=8, steps=2).save(tmp_path / "job")
    for part in (tmp_path / "job").glob("*/kernels/*/*.parquet"):
        part.write_bytes(b"no")
    with pytest.raises(ResultError, match="no run is left"):
        open_tables(cuptiprof.open_job(tmp_path / "job"))
    with pytest.raises(CuptiprofError, match="memory of Spark"):
        open_tables(cuptiprof.open_job(tmp_path / "job"), "spark", memory="1GB")


@pytest.mark.nightly
def test_spark_says_what_duckdb_says(folder: Path) -> None:
    job = cuptiprof.open_job(folder)
    duckdb, spark = open_tables(job), open_tables(job, "spark")
    asked = {**ANALYSES, "series": step_series, "medians": kernel_medians, "calls": collective_calls}
    for name, ask in asked.items():
        answers = [ask(tables).to_pyarrow().to_pylist() for tables in (duckdb, spark)]
        if name == "calls":  # in no order
            answers = [sorted(rows, key=lambda row: (row["rank"], row["start"])) for rows in answers]
        assert answers[0] == answers[1], name
        assert answers[0], name
