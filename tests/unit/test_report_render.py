"""Every format of every view: golden texts, names that try to do harm, and what parsers make of the output."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import re
from pathlib import Path

import pandas as pd
import pytest
from conftest import trace_path
from report_results import HOSTILE, make_result, training_step

import cuptiprof
from cuptiprof.data.result import Result
from cuptiprof.errors import ResultError
from cuptiprof.report import VIEWS

GOLDEN = Path(__file__).parents[1] / "golden"


@pytest.mark.parametrize("view", ["summary", "gpu-trace", "api-trace", "regions"])
@pytest.mark.parametrize("form,suffix", [("text", "txt"), ("markdown", "md"), ("csv", "csv"), ("json", "json")])
def test_golden(view: str, form: str, suffix: str) -> None:
    """The files were checked by hand against the rows of report_results.training_step."""
    text = training_step().report(view).to(form)
    assert text == (GOLDEN / f"step.{view}.{suffix}").read_bytes().decode()


def test_golden_alexnet() -> None:
    text = str(cuptiprof.open(trace_path("alexnet-a100")).summary(limit=8))
    assert text == (GOLDEN / "alexnet-a100.summary.txt").read_text()


def hostile() -> Result:
    kernel = {"name": HOSTILE, "start": 0, "end": 10, "correlation_id": 1, "region": "@SUM(1)\x1b]0;t\x07"}
    region = {"start": 0, "end": 5, "name": "@SUM(1)\x1b]0;t\x07", "path": "@SUM(1)\x1b]0;t\x07", "instance": 1}
    call = {"start": 0, "end": 1, "name": "-1+1\x9b31m", "correlation_id": 1}
    return make_result(
        {"kernels": [kernel], "regions": [region], "api_calls": [call]}, {"device": "import:\x1b[2J|<i>.json"}
    )


@pytest.mark.parametrize("view", list(VIEWS))
@pytest.mark.parametrize("form", ["text", "rich", "markdown", "csv", "json"])
def test_hostile_names_stay_text(view: str, form: str) -> None:
    text = hostile().report(view, demangle=False).to(form, width=240)
    if form == "rich":  # its own colours, and nothing else
        text = re.sub(r"\x1b\[[0-9;]*m", "", text)
    assert not re.search("[\x00-\x09\x0b\x0c\x0e-\x1f\x7f-\x9f\u202e]", text)
    if form == "rich" and view in ("summary", "gpu-trace"):
        assert "[red]r[/red]" in text
    if form == "markdown":
        assert "<b>" not in text and "<i>" not in text and "https://" not in text
        tables = [line for line in text.splitlines() if line.startswith("|")]
        assert len({line.count("|") for line in tables if "Avg" in tables[0]} or {1}) == 1
    if form == "csv":
        body = [line for line in text.splitlines() if not line.startswith("#")]
        for row in csv.reader(body):
            assert not any(cell.startswith(("=", "+", "-", "@")) for cell in row)


def read_csv(text: str) -> pd.DataFrame:
    """Numbers by Python, to the last bit: pandas 2 does so only if it is asked to, and pandas 3 warns of being asked."""
    frame = pd.read_csv(io.StringIO(text), comment="#", dtype=str)
    for name in frame:
        with contextlib.suppress(ValueError):
            frame[name] = [float(v) if isinstance(v, str) else None for v in frame[name]]
    return frame


@pytest.mark.parametrize("view", list(VIEWS))
def test_csv_is_read_by_pandas(view: str) -> None:
    r = cuptiprof.open(trace_path("train-v100"))
    report = r.report(view)
    frame = read_csv(report.to("csv"))
    rows = report.rows
    assert len(frame) == len(rows)
    for key in ("time_ns", "avg_ns", "duration_ns", "calls", "kernels", "name", "region", "throughput"):
        if rows and key in frame and key in rows[0]:
            assert [None if pd.isna(v) else v for v in frame[key]] == [row[key] for row in rows], key
    for key in ("grid", "block"):
        if f"{key}_x" in frame and rows:
            got = frame[[f"{key}_{axis}" for axis in "xyz"]].to_numpy().tolist()
            assert got[0] == list(rows[0][key])


def test_csv_in_other_units() -> None:
    frame = read_csv(training_step().summary(units="us").to("csv"))
    gemm = frame[frame["name"] == "gemm(float*, float*, int)"].iloc[0]
    assert gemm["time_us"] == 22.345 and gemm["min_us"] == 10 and gemm["calls"] == 2


def test_markdown_tables_are_whole() -> None:
    for view in VIEWS:
        lines = training_step().report(view).to("markdown").splitlines()
        for i, line in enumerate(lines):
            if line.startswith(("|--:", "|:--")):
                width = line.count("|")
                rest = lines[i + 1 :]
                rows = rest[: rest.index("")]
                assert rows and all(row.count("|") == width == lines[i - 1].count("|") for row in rows)


def test_simulation_and_losses_are_said_in_every_format() -> None:
    for view in VIEWS:
        for form in ("text", "rich", "markdown", "csv"):
            text = training_step().report(view).to(form, width=200)
            assert "SIMULATED" in text and "V100" in text, (view, form)
            assert "pool" in text and "exhausted" in text, (view, form)
            assert form == "csv" or "exhausted" in text.strip().splitlines()[-1]
        data = json.loads(training_step().report(view).to("json"))
        assert data["metadata"]["simulated"] is True and data["losses"]["pool_exhausted"] == 3


@pytest.mark.parametrize("view", list(VIEWS))
@pytest.mark.parametrize("form", ["text", "rich", "markdown", "csv", "json"])
def test_nothing_recorded(view: str, form: str) -> None:
    text = Result({}).report(view).to(form)
    if form == "json":
        assert json.loads(text)["rows"] == []
    elif form != "csv":
        assert "recorded" in text
    assert "Lost" not in text


def test_terminal_cuts_names_not_numbers() -> None:
    long = make_result({"kernels": [{"name": "k" * 500, "start": 0, "end": 123_456}]})
    lines = long.summary().to("rich", width=90).splitlines()
    assert all(len(re.sub(r"\x1b\[[0-9;]*m", "", line)) <= 90 for line in lines)
    assert any("123.46us" in line and "…" in line for line in lines)
    assert "k" * 500 in str(long.summary())


def test_bad_wishes() -> None:
    r = training_step()
    for wish in ({"view": "nope"}, {"units": "h"}, {"limit": -1}):
        with pytest.raises(ResultError):
            r.report(**wish)  # type: ignore[arg-type]
    with pytest.raises(ResultError, match="markdown"):
        r.summary().to("html")
