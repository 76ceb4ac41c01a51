"""Results on disk: written line by line, read as if an enemy had written them."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bench_rows import ENVIRONMENT, counters, failed, row
from hypothesis import given
from hypothesis import strategies as st

from cuptiprof.bench.results.row import Row
from cuptiprof.bench.results.store import Results, ResultsWriter, read_results
from cuptiprof.errors import ResultError


def write(path: Path, *rows: Row, environment: Mapping[str, Any] = ENVIRONMENT, **more: Any) -> Path:
    with ResultsWriter(path, environment, **more) as writer:
        for r in rows:
            writer.add(r)
    return path


@pytest.fixture
def file(tmp_path: Path) -> Path:
    rows = [row(1000, params={"n": 1}, counters=counters(("ipc", 1.5, "inst/cycle"))), failed(params={"n": 2})]
    return write(tmp_path / "out.jsonl", *rows)


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_what_was_written_is_read(file: Path) -> None:
    results = read_results(file)
    assert results.environment == ENVIRONMENT and results.notes == ()
    one, two = results.rows
    assert one.measurement is not None and np.array_equal(one.measurement.samples, row(1000).measurement.samples)  # type: ignore[union-attr]
    assert one.measurement.counter("ipc") == 1.5 and one.measurement.environment == ENVIRONMENT
    assert two.failure is not None and str(two.failure) == "ValueError: no (b.py:3)" and two.params == {"n": 2}


def test_the_environment_is_stored_once_and_what_is_special_with_its_row(tmp_path: Path) -> None:
    special = row(environment={**ENVIRONMENT, "clocks": {"sm_mhz": 1980.0, "power_w": float("nan")}})
    path = write(tmp_path / "o.jsonl", special)
    assert lines(path)[1]["measurement"]["environment"] == {"clocks": {"sm_mhz": 1980.0, "power_w": None}}
    (read,) = read_results(path).rows
    assert read.measurement is not None and read.measurement.environment["chip"] == "H100"


def test_each_row_is_on_disk_at_once(tmp_path: Path) -> None:
    path = tmp_path / "o.jsonl"
    with ResultsWriter(path, ENVIRONMENT) as writer:
        assert len(read_results(path)) == 0
        for n in (1, 2, 3):
            writer.add(row(params={"n": n}))
            assert len(read_results(path)) == n


def test_a_point_measured_again_counts_as_last_measured(file: Path) -> None:
    write(file, row(5000, noise=0.0, params={"n": 1}), resume=True)
    results = read_results(file)
    assert len(results) == 2 and len(lines(file)) == 5
    assert results.rows[-1].measurement is not None and results.rows[-1].measurement.median == 5000.0


def test_existing_results_are_not_touched_unasked(file: Path) -> None:
    before = file.read_bytes()
    with pytest.raises(ResultError, match="exists"):
        write(file)
    assert file.read_bytes() == before
    write(file, overwrite=True)
    assert len(lines(file)) == 1


@pytest.mark.parametrize("how", [{"resume": True}, {"overwrite": True}])
def test_files_that_are_not_ours_are_not_touched(tmp_path: Path, how: dict[str, bool]) -> None:
    path = tmp_path / "thesis.txt"
    path.write_text("years of work\n")
    with pytest.raises(ResultError, match="not JSON"):
        write(path, **how)
    assert path.read_text() == "years of work\n"


def test_one_writer_at_a_time(file: Path) -> None:
    with (
        ResultsWriter(file, ENVIRONMENT, resume=True),
        pytest.raises(ResultError, match="written by another program"),
    ):
        ResultsWriter(file, ENVIRONMENT, resume=True)
    write(file, resume=True)


@pytest.mark.parametrize("cut", [1, 20, 3000])
def test_a_line_cut_off_is_left_out_and_then_dropped(file: Path, cut: int) -> None:
    write(file, row(params={"n": 3}), resume=True)
    whole = file.read_bytes()
    file.write_bytes(whole[:-cut])
    results = read_results(file)
    assert len(results) == 2 and "its last line is cut off" in results.notes[0]
    write(file, row(7.0, params={"n": 4}), resume=True)
    after = read_results(file)
    assert after.notes == () and [r.params["n"] for r in after.rows] == [1, 2, 4]


def test_where_nothing_can_be_written(tmp_path: Path) -> None:
    with pytest.raises(ResultError, match="No such file or directory"):
        write(tmp_path / "none" / "o.jsonl")
    with pytest.raises(ResultError, match=r"is no file|Is a directory"):
        write(tmp_path, resume=True)
    with pytest.raises(ResultError, match="is no file"):
        write(Path("/dev/full"), resume=True)


def head(**changes: Any) -> str:
    return json.dumps({"kind": "run", "format": 1, "program": "cuptiprof bench", "environment": {}, **changes}) + "\n"


def point(**changes: Any) -> str:
    data = {**row(params={"n": 1}, n=5).to_dict(), **changes}
    return json.dumps({k: v for k, v in data.items() if v != "gone"}) + "\n"


def measured(**changes: Any) -> str:
    return point(measurement={**row(n=5).to_dict()["measurement"], **changes})


@pytest.mark.parametrize(
    "text,message",
    [
        ("", "is empty"),
        ("\x00\x01", "line 1: not JSON"),
        ("[1]\n", "not a JSON object"),
        ('{"a": NaN}\n', "NaN is no JSON"),
        ("[" * 100_000 + "\n", "not JSON"),
        ('{"machine_info": {}, "benchmarks": []}\n', "not a results file"),
        (point(), "line 1: not a results file"),
        (head(format=2), "results of format '2'"),
        (head(environment=[1]), "without an environment"),
        (head(process=0), "no number of a process: '0'"),
        (head(process=True), "no number of a process: 'True'"),
        (head(process="1" * 99), "no number of a process: '1{40}'"),
        (head(process=10**9), "no number of a process"),
        (head() + '{"kind": "x"}\n', "line 2: neither a run nor a point"),
        (head() + point(benchmark=7), r"Expected `str`, got `int` - at `\$\.benchmark`"),
        (head() + point(params=[1]), "Expected `object`, got `array`"),
        (head() + point(params={"n": [1]}), r"got `array` - at `\$\.params"),
        (head() + point(params={"n": 10**400}), "out of range"),
        (head() + point(params={"n": "x" * 5000}), "length <= 2000"),
        (head() + point(params={str(i): 1 for i in range(500)}), "length <= 100"),
        (head() + point(measurement=None), "either a measurement or a failure"),
        (head() + point(failure={"kind": "error"}), "either a measurement or a failure"),
        (head() + point(measurement="gone", failure={"kind": "?"}), "Invalid enum value"),
        (head() + point(seconds=-1), "`float` >= 0"),
        (head() + point(seconds=True), "Expected `float`, got `bool`"),
        (head() + measured(params={"n": 10**400}), "out of range"),
        (head() + measured(params={str(i): 1 for i in range(500)}), "length <= 100"),
        (head() + measured(samples=["a"]), "Expected `float`, got `str`"),
        (head() + measured(samples=[]), "not a measurement"),
        (head() + measured(interval={"median": 1, "low": 1, "high": 1, "__class__": 1}), "unknown field"),
        (head() + '{"kind": "point"\n' + point(), "line 2: not JSON"),
    ],
)  # fmt: skip
def test_hostile_files_are_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_text(text)
    with pytest.raises(ResultError, match=message):
        read_results(path)


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/zero"), tmp_path):
        with pytest.raises(ResultError, match=r"is no file|Is a directory"):
            read_results(path)
    with pytest.raises(ResultError, match="No such file"):
        read_results(tmp_path / "none")


def test_a_file_that_is_too_large_is_refused_unread(tmp_path: Path) -> None:
    path = tmp_path / "large.jsonl"
    path.write_text(head())
    os.truncate(path, 5 << 30)  # sparse
    with pytest.raises(ResultError, match="5,368,709,120 bytes"):
        read_results(path)


Json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
FIELDS = ["kind", "benchmark", "params", "source", "arguments", "seconds", "measurement", "failure"]
INNER = list(row(n=5).to_dict()["measurement"])


@given(st.sampled_from(FIELDS), Json, st.sampled_from(INNER), Json)
def test_any_field_may_be_anything(tmp_path_factory: pytest.TempPathFactory, a: str, x: Any, b: str, y: Any) -> None:
    """Read or refused, never another exception; and what is read can be shown."""

    for line in (point(**{a: x}), measured(**{b: y})):
        path = tmp_path_factory.mktemp("fuzz") / "f.jsonl"
        path.write_text(head() + line)
        try:
            results = read_results(path)
        except ResultError:
            continue
        assert isinstance(results, Results)
        for form in ("text", "markdown", "csv", "json"):
            results.report().to(form)
