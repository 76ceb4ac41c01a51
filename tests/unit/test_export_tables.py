"""Tables as Parquet, Arrow and CSV: what pandas, Polars and pyarrow read is what the run has; no cell of a CSV runs."""

from __future__ import annotations

import csv
import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from conftest import trace_path
from report_results import HOSTILE, make_result, training_step

import cuptiprof
from cuptiprof.cli import main
from cuptiprof.data.result import Result
from cuptiprof.data.tables import schema
from cuptiprof.errors import ResultError
from cuptiprof.export import table_files
from cuptiprof.text.names import display_name

SUFFIXES = [".parquet", ".arrow", ".feather", ".csv", ".csv.gz"]


def read(path: Path) -> pd.DataFrame:
    if path.suffix == ".parquet":
        return pd.read_parquet(path)
    if path.suffix in (".arrow", ".feather"):
        return pd.read_feather(path)
    return pd.read_csv(path, comment="#", keep_default_na=True)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_kernels_are_the_usual_table(tmp_path: Path, suffix: str) -> None:
    result = training_step()
    result.export(tmp_path / f"t{suffix}")
    frame, kernels = read(tmp_path / f"t{suffix}"), result.kernels
    assert len(frame) == len(kernels)
    assert list(frame["name"]) == [display_name(name) for name in kernels["name"]]
    assert list(frame["mangled_name"]) == kernels["name"].tolist()
    for column in ("start", "end", "duration", "grid_x", "block_x", "registers_per_thread", "stream", "correlation_id"):
        assert frame[column].tolist() == kernels[column].tolist(), column
    assert frame["region"].fillna("").tolist() == kernels["region"].tolist()
    assert [c for c in frame.columns if c != "mangled_name"] == kernels.all_columns


@pytest.mark.parametrize("table", schema())
@pytest.mark.parametrize("suffix", [".parquet", ".arrow", ".csv"])
def test_every_table(tmp_path: Path, table: str, suffix: str) -> None:
    result = cuptiprof.open(trace_path("alexnet-a100"))
    result.export(tmp_path / f"t{suffix}", table=table)
    frame, own = read(tmp_path / f"t{suffix}"), result.tables[table]
    assert len(frame) == len(own) and set(own.all_columns) <= set(frame.columns)
    for column, spec in schema()[table].items():
        if column == "name" and table in ("kernels", "metric_ranges"):
            continue
        found = frame[column].astype(object).where(frame[column].notna(), "" if spec.is_text else np.nan).tolist()
        expected = own[column].tolist()
        if spec.is_text and suffix == ".csv":
            assert [str(x) for x in found] == expected, column
        else:
            np.testing.assert_array_equal(np.array(found, object if spec.is_text else own[column].dtype), own[column])


def test_polars_reads_both(tmp_path: Path) -> None:
    result = cuptiprof.open(trace_path("train-v100"))
    result.export(tmp_path / "t.parquet")
    result.export(tmp_path / "t.arrow")
    by_name = pl.read_parquet(tmp_path / "t.parquet").group_by("name").agg(pl.col("duration").sum())
    data = result.report("summary").content.data
    ours = {
        n: ns
        for n, ns, block in zip(data["name"], data["time_ns"], data["block"], strict=True)
        if block == "GPU activities"
    }
    found = dict(by_name.with_columns(pl.col("name").cast(pl.String)).iter_rows())
    assert found == {name: ns for name, ns in ours.items() if not name.startswith("[CUDA mem")}
    assert pl.read_ipc(tmp_path / "t.arrow").height == len(result.kernels)


def test_metrics_are_columns_and_what_is_missing_is_null(tmp_path: Path) -> None:
    tables: dict[str, Any] = {
        "kernels": [{"name": "k", "start": 10 * i, "end": 10 * i + 5, "correlation_id": i} for i in (1, 2)],
        "metric_ranges": [{"id": 1, "kind": 1, "correlation_id": 1, "name": "k", "occurrences": 1}],
        "metrics": [{"range": 1, "metric": "odd,=name", "value": 2.5, "count": 1}],
    }
    result = make_result(tables)
    result.export(tmp_path / "t.parquet")
    values = pq.read_table(tmp_path / "t.parquet").column("odd,=name")
    assert values.to_pylist() == [2.5, None]
    result.export(tmp_path / "t.csv")
    rows = list(csv.DictReader((tmp_path / "t.csv").open()))
    assert [row["odd,=name"] for row in rows] == ["2.5", ""]


def test_names_that_are_shown_alike(tmp_path: Path) -> None:
    """A category may be there once only."""
    names = ["_Z4gemmPfS_i", "gemm(float*, float*, int)", "\ud800", "\\ud800"]
    rows = [{"name": name, "start": i, "end": i + 1} for i, name in enumerate(names)]
    for suffix in SUFFIXES:
        make_result({"kernels": rows}).export(tmp_path / f"t{suffix}")
        found = read(tmp_path / f"t{suffix}")["name"].tolist()
        assert found == ["gemm(float*, float*, int)"] * 2 + ["\\ud800"] * 2, suffix


def test_units_and_what_it_is_of_are_in_the_schema(tmp_path: Path) -> None:
    training_step().export(tmp_path / "t.parquet")
    found = pq.read_schema(tmp_path / "t.parquet")
    assert found.field("start").metadata[b"unit"] == b"ns" and b"entry" not in found.field("start").metadata[b"doc"]
    about = json.loads(found.metadata[b"cuptiprof"])
    assert about["table"] == "kernels" and about["simulated"] and about["unix_time_of_0_ns"] == 10**18


@pytest.mark.parametrize(
    "name", [HOSTILE, "=1+1", "+1", "-1", "@SUM(A1)", "\tx", "\rx", "a\nb", 'quote"d', "# no comment", "\ud800"]
)
def test_no_cell_runs(tmp_path: Path, name: str) -> None:
    make_result({"regions": [{"name": name, "path": name, "start": 1, "end": 2, "instance": 1}]}).export(
        tmp_path / "t.csv", table="regions"
    )
    text = (tmp_path / "t.csv").read_bytes().decode()
    (row,) = csv.DictReader(text.splitlines())
    assert not row["name"].startswith(("=", "+", "-", "@", "\t", "\r")) and row["name"].isprintable()
    assert read(tmp_path / "t.csv")["name"].tolist() == [row["name"]]


def test_a_csv_says_what_it_is_of(tmp_path: Path) -> None:
    training_step().export(tmp_path / "t.csv.gz")
    lines = gzip.decompress((tmp_path / "t.csv.gz").read_bytes()).decode().splitlines()
    assert (
        lines[0] == "# SIMULATED" and lines[1].startswith("# Lost: 3 pool_exhausted") and lines[2].startswith("start,")
    )
    make_result({}).export(tmp_path / "empty.csv")
    (header,) = (tmp_path / "empty.csv").read_text().splitlines()
    assert header.startswith("start,end,")


def test_many_rows_come_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One dictionary for all parts: an Arrow file may have no other."""
    result = cuptiprof.open(trace_path("train-v100"))
    monkeypatch.setattr(table_files, "ROWS_AT_ONCE", 1000)
    seen: list[tuple[int, int]] = []
    for suffix in (".parquet", ".arrow", ".csv"):
        result.export(tmp_path / f"t{suffix}", progress=lambda done, total: seen.append((done, total)))
        frame = read(tmp_path / f"t{suffix}")
        assert frame["start"].tolist() == result.kernels["start"].tolist()
        assert frame["mangled_name"].tolist() == result.kernels["name"].tolist()
        assert frame["grid_x"].tolist() == result.kernels["grid_x"].tolist()
    assert seen[0] == (1000, len(result.kernels)) and seen[-1][0] == seen[-1][1]
    assert pq.ParquetFile(tmp_path / "t.parquet").num_row_groups == 5
    assert isinstance(pa.ipc.open_file(tmp_path / "t.arrow").schema.field("name").type, pa.DictionaryType)


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    training_step().save(tmp_path / "run.cuptiprof")
    assert main(["export", str(tmp_path / "run.cuptiprof"), "-o", str(tmp_path / "c.csv"), "--table", "memcpys"]) == 0
    assert read(tmp_path / "c.csv")["bytes"].tolist() == [4096]
    for arguments, said in (
        (["-o", str(tmp_path / "t.json"), "--table", "memcpys"], "chrome has no table to choose"),
        (["-o", str(tmp_path / "t.csv"), "--table", "memcpy"], "no table 'memcpy'"),
        (["-o", str(tmp_path / "t.xlsx")], "cannot tell the format"),
    ):
        assert main(["export", str(tmp_path / "run.cuptiprof"), *arguments]) != 0
        assert said in capsys.readouterr().err
    assert main(["export", str(tmp_path / "run.cuptiprof"), "-o", str(tmp_path / "x"), "--format", "parquet"]) == 0
    assert len(pd.read_parquet(tmp_path / "x")) == 4


def test_rows_without_times_stay(tmp_path: Path) -> None:
    """A table is the run's, other formats leave out what has no place on a time line."""
    result: Result = make_result({"kernels": [{"name": "k"}, {"name": "k", "start": 1, "end": 2}]})
    result.export(tmp_path / "t.parquet")
    assert len(pd.read_parquet(tmp_path / "t.parquet")) == 2
    with pytest.raises(ResultError, match="no table 'nothing'"):
        result.export(tmp_path / "n.parquet", table="nothing")
