"""A folder of ranks: all that can be opened is, and what is damaged or missing is named."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from conftest import DATA
from databases import KIND, NSYS_VERSIONS, DatabaseMaker, global_id
from report_results import make_result

import cuptiprof
from cuptiprof.cli import main
from cuptiprof.errors import ResultError
from cuptiprof.io.rank_folder import open_ranks

RANKS = [DATA / "ranks" / f"rank{rank}.json.gz" for rank in (0, 1)]


def trace(path: Path, rank: int | None = None, world_size: int = 2) -> Path:
    """A trace of one kernel; of no job without a rank."""
    job = {} if rank is None else {"distributedInfo": {"backend": "nccl", "rank": rank, "world_size": world_size}}
    kernel = {
        "ph": "X",
        "cat": "kernel",
        "name": "k",
        "ts": 1,
        "dur": 2,
        "pid": 0,
        "tid": 7,
        "args": {"device": 0, "stream": 7, "correlation": 1},
    }
    path.write_text(json.dumps({**job, "traceEvents": [kernel]}))
    return path


def database(path: Path) -> Path:
    made = DatabaseMaker(path, NSYS_VERSIONS["3.16.1"])
    kernel = {
        "start": 1_000,
        "end": 3_000,
        "deviceId": 0,
        "contextId": 1,
        "streamId": 7,
        "correlationId": 1,
        "globalPid": global_id(),
    }
    made.add(KIND + "KERNEL", [{**kernel, "demangledName": made.text("k")}])
    return made.done()


def ranks_of(folder: Path) -> list[int]:
    return [result.metadata["rank"] for result in open_ranks(folder)]


def note(folder: Path) -> str:
    return str(open_ranks(folder)[0].metadata.get("note", ""))


def test_traces_and_databases_by_rank(tmp_path: Path) -> None:
    trace(tmp_path / "b.json", 0, 4)
    trace(tmp_path / "a.json", 1, 4)
    database(tmp_path / "report_rank3.sqlite")
    database(tmp_path / "what.nsys")
    (tmp_path / "notes.txt").write_text("not a trace")
    assert ranks_of(tmp_path) == [0, 1, 2, 3]
    assert [r.metadata["origin"]["file"] for r in open_ranks(tmp_path)] == [
        "b.json",
        "a.json",
        "what.nsys",
        "report_rank3.sqlite",
    ]
    assert "LEFT OUT" not in note(tmp_path) and "missing" not in note(tmp_path)


def test_one_database_of_a_rank_each_is_one_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for rank in (1, 0):
        database(tmp_path / f"r{rank}.sqlite")
    assert main(["report", str(tmp_path), "--view", "temporal", "--format", "json"]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert [(row["rank"], row["compute_ns"]) for row in rows] == [(0, 2_000), (1, 2_000)]


def test_damaged_ranks_are_named_and_the_others_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copy(RANKS[0], tmp_path)
    (tmp_path / "rank1.json.gz").write_bytes(RANKS[1].read_bytes()[:2_000])
    (tmp_path / "rank2.sqlite").write_bytes(database(tmp_path / "x").read_bytes()[:5_000])
    (tmp_path / "x").unlink()
    (tmp_path / "config.json").write_text("{}")
    assert main(["report", str(tmp_path), "--view", "temporal", "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [row["rank"] for row in found["rows"]] == [0]
    said = "\n".join(found["header"])
    for file in (
        "rank1.json.gz: truncated or damaged gzip file",
        "rank2.sqlite: truncated or damaged SQLite database",
        "config.json: no traceEvents",
    ):
        assert f"LEFT OUT: {tmp_path}/{file}" in said
    assert "of 2 ranks 1 is missing or damaged" in said


def test_missing_ranks_are_named(tmp_path: Path) -> None:
    trace(tmp_path / "a.json", 0, 16)
    trace(tmp_path / "b.json", 3, 16)
    assert note(tmp_path) == "of 16 ranks 1, 2, 4, 5, 6, 7, 8, 9 and 6 more are missing"
    trace(tmp_path / "b.json", 1, 10**30)
    assert "of 1000000 ranks" in note(tmp_path)


def test_a_rank_that_is_there_twice(tmp_path: Path) -> None:
    for name in "ab":
        trace(tmp_path / f"{name}.json", 1)
    assert note(tmp_path) == "of 2 ranks 0 is missing; 2 files say that they are rank 1: a.json, b.json"


def test_names_say_the_rank_where_files_do_not(tmp_path: Path) -> None:
    for name in ("rank-10.json", "trace_rank2_step.json", "rank99999999.json", "other.json"):
        trace(tmp_path / name)
    assert ranks_of(tmp_path) == [0, 1, 2, 10]


def test_nothing_that_can_be_opened(tmp_path: Path) -> None:
    for name in ("a.json", "b.json"):
        (tmp_path / name).write_text("[")
    with pytest.raises(ResultError, match=r"none of 2 files could be opened; of a\.json: "):
        open_ranks(tmp_path)


def test_one_file_is_itself(tmp_path: Path) -> None:
    assert len(open_ranks(RANKS[1])) == 1 and open_ranks(RANKS[1])[0].metadata["rank"] == 1
    with pytest.raises(ResultError, match="no such run or trace"):
        open_ranks(tmp_path / "nowhere")
    (tmp_path / "only.json").write_text("[")
    with pytest.raises(ResultError, match=r"only\.json"):
        open_ranks(tmp_path)


def test_saved_runs_keep_what_they_are(tmp_path: Path) -> None:
    for rank, file in enumerate(RANKS):
        cuptiprof.open(file).save(tmp_path / f"{9 - rank}.cuptiprof")
    assert ranks_of(tmp_path) == [0, 1]


def test_processes_that_are_no_ranks(tmp_path: Path) -> None:
    """What ``run --profile-child-processes`` leaves: all of rank 0, and that is well."""
    for name in "ab":
        made = make_result({"kernels": [{"name": "k", "start": 1, "end": 2}]}, {"rank": 0})
        made.save(tmp_path / f"{name}.cuptiprof")
    assert ranks_of(tmp_path) == [0, 0] and note(tmp_path) == ""


def test_a_folder_of_traces_is_no_run(tmp_path: Path) -> None:
    for name in ("a.json", "b.json"):
        trace(tmp_path / name)
    with pytest.raises(ResultError, match="is no saved run, but holds 2 traces") as caught:
        cuptiprof.open(tmp_path)
    assert "cuptiprof report" in str(caught.value)
