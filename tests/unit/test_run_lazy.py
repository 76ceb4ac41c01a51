"""Saved runs are read column by column when asked for; what is damaged is said when it is met."""

from __future__ import annotations

import errno
import json
import os
import pickle
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import cuptiprof
from cuptiprof.data.result import Result
from cuptiprof.data.tables import Strings, Table
from cuptiprof.errors import ResultError
from cuptiprof.io import run_columns
from cuptiprof.io.opened_folder import OpenedFolder

ROWS = 5000
NAMES = ["gemm", "größe", "sgd"]


def result(rows: int = ROWS) -> Result:
    strings = Strings()
    i = np.arange(rows)
    codes = np.array([strings.code(name) for name in NAMES], np.uint32)
    kernels = {"start": 100 * i, "end": 100 * i + 50, "name": codes[i % 3], "config": i % 2, "stream": np.full(rows, 7)}
    return Result(
        {
            "kernels": Table.from_columns("kernels", kernels, strings),
            "launch_configs": Table.from_columns("launch_configs", {"grid_x": [8, 9]}, strings),
            "memsets": Table.from_columns("memsets", {"start": [1], "end": [2]}, strings),
        }
    )


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(run_columns, "SMALL_ROWS", 100)  # kernels are many, sets are few
    result().save(tmp_path / "run")
    return tmp_path / "run"


def test_a_notebook_reads_the_first_rows_only(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = cuptiprof.open(run).kernels
    read: list[int] = []
    joined = run_columns.joined
    monkeypatch.setattr(
        run_columns, "joined", lambda parts, rows, dtype: read.append(rows) or joined(parts, rows, dtype)
    )
    html = opened._repr_html_()
    assert "5,000 rows" in html and "größe" in html and html.count("<tr>") == 11
    assert set(read) == {10} and len(read) > 20
    assert opened.head(3)["name"].tolist() == NAMES and len(opened.head(10 * ROWS)) == ROWS
    assert opened["start"].tolist() == result().kernels["start"].tolist()  # the whole is still to be had
    assert opened.head(2)["start"].tolist() == [0, 100] and read.count(ROWS) == 1


def part(run: Path, table: str = "kernels") -> Path:
    return run / table / "rank=0" / "part-0.parquet"


def rewrite(run: Path, column: str, values: Any, table: str = "kernels") -> None:
    """The file again, with other values in a column."""
    old = pq.ParquetFile(part(run, table)).read()
    pq.write_table(old.set_column(old.column_names.index(column), column, pa.array(values)), part(run, table))


def spoil(run: Path, column: str) -> None:
    """Bytes of a column in the middle of the file."""
    group = pq.ParquetFile(part(run)).metadata.row_group(0)
    chunk = next(c for c in map(group.column, range(group.num_columns)) if c.path_in_schema == column)
    with part(run).open("r+b") as f:
        f.seek(chunk.data_page_offset)
        f.write(b"\xff" * chunk.total_compressed_size)


def open_files(run: Path) -> list[str]:
    """Names of the tables whose files this process has open."""
    links = (
        os.readlink(f"/proc/self/fd/{f}") for f in os.listdir("/proc/self/fd") if os.path.lexists(f"/proc/self/fd/{f}")
    )
    return [Path(link).relative_to(run).parts[0] for link in links if link.startswith(str(run))]


def test_only_the_columns_that_are_asked_for_are_read(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    chunks = run_columns.ParquetTable._chunks
    monkeypatch.setattr(run_columns.ParquetTable, "_chunks", lambda self, column: read.append(column) or chunks(self, column))  # fmt: skip
    opened = cuptiprof.open(run)
    of_small_tables, read[:] = set(read), []
    assert {
        "text",
        "grid_x",
        "bytes",
    } <= of_small_tables and "name" not in of_small_tables  # of strings, configurations, sets
    assert len(opened.kernels) == ROWS and read == []
    assert opened.kernels["grid_x"].tolist()[:3] == [8, 9, 8] and read == ["config"]
    opened.summary(), opened.summary()
    assert sorted(read) == ["config", "end", "name", "start"]
    assert opened.kernels["start"] is opened.kernels["start"] and not opened.kernels["start"].flags.writeable
    assert opened.filter("gemm").kernels["stream"].tolist() == [7] * len(range(0, ROWS, 3))


def test_what_was_saved_is_what_is_read(run: Path) -> None:
    opened, saved = cuptiprof.open(run), result()
    for column in (*saved.kernels.column_names, "grid_x", "block_z", "duration"):
        np.testing.assert_array_equal(opened.kernels[column], saved.kernels[column], column)
    assert list(opened.kernels.strings) == list(saved.kernels.strings)
    assert opened.kernels.codes("name").tolist() == saved.kernels.codes("name").tolist()


@pytest.mark.parametrize("table", ["kernels", "memsets"])
def test_a_run_from_before_a_sparse_column_has_zeros_there(table: str, run: Path) -> None:
    old = pq.ParquetFile(part(run, table)).read()
    later = ["operator", "operator_instance", "module", "backward"]
    pq.write_table(old.drop_columns(later), part(run, table))
    opened = cuptiprof.open(run).tables[table]
    assert len(opened) == len(result().tables[table])
    assert set(opened["operator"]) == set(opened["module"]) == {""}
    assert not opened["backward"].any() and not opened["operator_instance"].any()
    pq.write_table(old.drop_columns([*later, "stream"]), part(run, table))
    with pytest.raises(ResultError, match="column stream is missing"):
        cuptiprof.open(run)


def test_several_row_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from cuptiprof.io import run_writer

    monkeypatch.setattr(run_writer, "ROWS_AT_ONCE", 700)
    result().save(tmp_path / "run")
    assert pq.ParquetFile(part(tmp_path / "run")).num_row_groups == 8
    np.testing.assert_array_equal(cuptiprof.open(tmp_path / "run").kernels["name"], result().kernels["name"])


def test_the_folder_is_what_other_programs_read(run: Path) -> None:
    import polars as pl

    kernels = pl.read_parquet(run / "kernels/**/*.parquet", hive_partitioning=True)
    configs = pl.read_parquet(run / "launch_configs/**/*.parquet", hive_partitioning=True)
    joined = (
        kernels.join(configs, on=["rank", "config"]).group_by("name").agg(pl.len(), pl.col("grid_x").sum()).sort("name")
    )
    assert joined.rows() == [("gemm", 1667, 14169), ("größe", 1667, 14170), ("sgd", 1666, 14161)]


@pytest.mark.parametrize("column", ["stream", "name", "config"])
def test_a_damaged_column_costs_only_itself(column: str, run: Path) -> None:
    spoil(run, column)
    opened = cuptiprof.open(run)
    assert opened.kernels["start"].tolist() == result().kernels["start"].tolist()
    for _ in range(2):
        with pytest.raises(ResultError, match=f"kernels: column {column}: damaged") as caught:
            opened.kernels[column]
        assert "\n" not in caught.value.message and caught.value.hint
    if column == "config":
        with pytest.raises(ResultError, match="column config: damaged"):
            opened.kernels["grid_x"]


LONG = 2**40


@pytest.mark.parametrize(
    "column, values, message",
    [
        ("config", [0, 2] * (ROWS // 2), "column config: 2 of 2 rows"),
        ("config", [-1] * ROWS, "column config: damaged"),
        ("stream", [LONG] * ROWS, "column stream: damaged"),
        ("stream", [None] + [7] * (ROWS - 1), "column stream: damaged .a row has no value"),
        ("stream", ["seven"] * ROWS, "column stream: damaged"),
        ("stream", [[7]] * ROWS, "column stream: damaged"),
        ("start", [0.5] * ROWS, "column start: damaged"),
        ("name", ["gemm", "other"] * (ROWS // 2), "column name: damaged .'other' is not in the run's list"),
        ("name", ["gemm", None] * (ROWS // 2), "column name: damaged .a row has no value"),
        ("name", [1] * ROWS, "column name: damaged"),
        ("name", [b"\xff"] * ROWS, "column name: damaged"),
    ],
)
def test_values_are_checked_on_first_use(column: str, values: Any, message: str, run: Path) -> None:
    rewrite(run, column, values)
    opened = cuptiprof.open(run)
    with pytest.raises(ResultError, match=message):
        opened.kernels[column]


def test_an_index_beyond_its_dictionary(run: Path) -> None:
    """Arrow takes such a file as it is."""
    array = pa.DictionaryArray.from_arrays(pa.array([0] * ROWS, pa.int32()), pa.array(["gemm"]))
    file = run_columns.ParquetTable(OpenedFolder(run), "kernels", ROWS)
    for index in (1, -1):
        bad = pa.DictionaryArray.from_arrays(pa.array([index] * ROWS, pa.int32()), array.dictionary, safe=False)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(run_columns.ParquetTable, "_chunks", lambda self, column, bad=bad: iter([bad]))
            with pytest.raises(ResultError, match="beyond its dictionary"):
                file.column(run_columns.schema()["kernels"]["name"], lambda text: 1)


def edit(run: Path, table: str, rows: int) -> None:
    header = json.loads((run / "run.json").read_text())
    header["rows"][table] = rows
    (run / "run.json").write_text(json.dumps(header))


@pytest.mark.parametrize(
    "damage, message",
    [
        (lambda run: edit(run, "kernels", ROWS + 1), "run.json counts 5001"),
        (lambda run: edit(run, "strings", 9), "strings: 4 rows, but run.json counts 9"),
        (lambda run: edit(run, "launch_configs", 1), "run.json counts 1"),
        (lambda run: part(run, "strings").unlink(), "strings: missing"),
        (lambda run: part(run, "launch_configs").unlink(), "launch_configs: missing"),
        (
            lambda run: rewrite(run, "text", ["", None, "a", "b"], "strings"),
            "strings: damaged .not a text in every row",
        ),
        (lambda run: rewrite(run, "text", [0, 1, 2, 3], "strings"), "strings: damaged"),
        (lambda run: rewrite(run, "config", [1, 0], "launch_configs"), "launch_configs: column config"),
        (lambda run: rewrite(run, "stream", [LONG], "memsets"), "memsets: column stream: damaged"),
        (lambda run: part(run).write_bytes(part(run).read_bytes()[:-9]), "damaged"),
        (lambda run: part(run).write_bytes(b""), "damaged"),
        (lambda run: os.truncate(part(run), 1 << 40), "damaged"),
    ],
)
def test_what_is_seen_at_opening(damage: Callable[[Path], None], message: str, run: Path) -> None:
    damage(run)
    with pytest.raises(ResultError, match=message):
        cuptiprof.open(run)


def test_more_rows_than_memory(tmp_path: Path) -> None:
    """A few bytes may say that they are 10^13 rows."""
    table = run_columns.ParquetTable.__new__(run_columns.ParquetTable)
    table.where, table.rows, table._files, table.names = tmp_path, 10**16, [], {"start"}
    for column in ("start", "stack"):  # "stack" is sparse and not there
        with pytest.raises(ResultError, match="damaged"):
            table.column(run_columns.schema()["kernels"][column])


def test_a_run_that_is_replaced_or_cut_after_it_was_opened(run: Path) -> None:
    opened = cuptiprof.open(run)
    result(200).save(run, overwrite=True)
    assert len(opened.kernels) == ROWS and opened.kernels["name"][4] == "größe"
    assert len(cuptiprof.open(run).kernels) == 200
    opened = cuptiprof.open(run)
    os.truncate(part(run), 10)
    with pytest.raises(ResultError, match="column start: damaged"):
        opened.kernels["start"]


def test_a_forked_child_reads_beside_its_parent(run: Path) -> None:
    opened = cuptiprof.open(run)
    child = os.fork()
    if child == 0:
        os._exit(0 if opened.kernels["start"].sum() == 100 * ROWS * (ROWS - 1) // 2 else 1)
    assert opened.kernels["end"].sum() == 100 * ROWS * (ROWS - 1) // 2 + 50 * ROWS
    assert os.waitpid(child, 0)[1] == 0


def test_it_can_be_sent_to_another_process(run: Path) -> None:
    copy = pickle.loads(pickle.dumps(cuptiprof.open(run)))
    assert copy.kernels["name"].tolist() == result().kernels["name"].tolist()


def test_files_stay_open_only_for_large_tables(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = cuptiprof.open(run)
    assert open_files(run) == ["kernels"]
    del opened
    end = time.monotonic() + 10  # Arrow's threads may hold it a moment longer
    while open_files(run) and time.monotonic() < end:
        time.sleep(0.01)
    assert open_files(run) == []
    monkeypatch.setattr(run_columns, "SMALL_ROWS", ROWS)
    opened = cuptiprof.open(run)
    assert open_files(run) == [] and len(opened.kernels["start"]) == ROWS


def test_too_many_open_files_are_no_damage(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: object) -> int:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    monkeypatch.setattr("cuptiprof.io.reopened.os.open", refuse)
    with pytest.raises(ResultError, match=r"cannot be read .Too many open files") as caught:
        cuptiprof.open(run)
    assert "ulimit" in caught.value.hint


def test_arrows_threads_read_without_python(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where they need the interpreter while it ends, they abort the process (apache/arrow#34314)."""
    monkeypatch.setattr(run_columns, "SMALL_ROWS", 10)
    readers = []
    really = os.pread
    monkeypatch.setattr(os, "pread", lambda *of: readers.append(threading.current_thread()) or really(*of))
    kernels = cuptiprof.open(run).kernels
    assert len(kernels.head(3)) == 3 and len(kernels["name"]) == ROWS
    assert set(readers) == {threading.main_thread()}  # run.json


def test_a_pipe_in_place_of_a_file_is_damage_and_not_waited_for(run: Path) -> None:
    (part,) = (run / "kernels" / "rank=0").iterdir()
    part.unlink()
    os.mkfifo(part)
    with pytest.raises(ResultError, match="kernels: cannot be read"):
        cuptiprof.open(run)


def test_a_selection_is_of_the_mask_as_it_was(run: Path) -> None:
    kernels = cuptiprof.open(run).kernels
    mask = np.zeros(ROWS, bool)
    mask[3] = True
    chosen = kernels.where(mask)
    mask[:] = True
    assert len(chosen) == 1 and chosen["start"].tolist() == [300]
    assert kernels.where(np.array([4, 4, -1]))["start"].tolist() == [400, 400, 100 * (ROWS - 1)]
    assert len(kernels.where(np.array([], int))) == 0
    for wrong in (np.ones(3, bool), np.array([ROWS]), np.array([-ROWS - 1]), np.zeros((2, 2), int)):
        with pytest.raises(IndexError):
            kernels.where(wrong)


def test_no_library_that_is_not_needed_is_imported(run: Path) -> None:
    """pyarrow's own conversions import pandas, most of a second."""
    code = (
        "import sys, cuptiprof\n"
        "r = cuptiprof.open(sys.argv[1])\n"
        "str(r.summary()), str(r.regions_report()), r.save(sys.argv[1] + '2')\n"
        "from cuptiprof.io.spill_folder import SpillFolder\n"
        "folder = SpillFolder(None, {})\n"
        "folder.write(r.tables)\n"
        "assert folder.read()[0]['kernels']['name'].tolist() == r.kernels['name'].tolist()\n"
        "print([m for m in ('pandas', 'pyarrow.compute', 'polars') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code, str(run)], capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.returncode) == ("[]\n", 0), done.stderr
