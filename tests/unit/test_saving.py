"""Saving: links, readers and writers beside each other, names that cannot be."""

from __future__ import annotations

import os
import stat
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import cuptiprof
import cuptiprof.io.files
import cuptiprof.io.opened_folder
import cuptiprof.io.runs
from cuptiprof.data.result import Result
from cuptiprof.data.tables import Strings, Table
from cuptiprof.errors import ResultError
from cuptiprof.io.opened_folder import OpenedFolder


def result(rows: int, name: str = "k") -> Result:
    strings = Strings()
    kernels = {"start": np.arange(rows), "end": np.arange(rows) + rows, "name": [name] * rows}
    tables = {
        "kernels": Table.from_columns("kernels", kernels, strings),
        "launch_configs": Table.from_columns("launch_configs", {"grid_x": [1]}, strings),
    }
    return Result(tables, {"rows": rows})


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "latest").symlink_to("disk/run")
    result(3).save(tmp_path / "latest")  # dangling so far
    assert len(cuptiprof.open(tmp_path / "disk" / "run").kernels) == 3
    with pytest.raises(ResultError, match="exists"):
        result(4).save(tmp_path / "latest")
    result(5).save(tmp_path / "latest", overwrite=True)
    assert (tmp_path / "latest").is_symlink() and len(cuptiprof.open(tmp_path / "latest").kernels) == 5
    (tmp_path / "trace.json").symlink_to("disk/trace.json")
    result(6).export(tmp_path / "trace.json")
    assert (tmp_path / "trace.json").is_symlink() and len(cuptiprof.open(tmp_path / "disk" / "trace.json").kernels) == 6
    assert sorted(p.name for p in tmp_path.iterdir()) == ["disk", "latest", "trace.json"]
    assert sorted(p.name for p in (tmp_path / "disk").iterdir()) == ["run", "trace.json"]


def test_a_device_or_a_pipe_is_written_to_and_stays(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    got: list[bytes] = []
    reader = threading.Thread(target=lambda: got.append(pipe.read_bytes()))
    reader.start()
    result(2).export(pipe, format="chrome")
    reader.join(20)
    assert got[0].startswith(b"{") and stat.S_ISFIFO(pipe.stat().st_mode)
    assert [p.name for p in tmp_path.iterdir()] == ["pipe"]


@pytest.mark.parametrize("exchange", [True, False])
def test_readers_beside_writers(exchange: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader gets one run or the other, whole; and always one where the file system can exchange."""
    if not exchange:

        def refuse(first: Path, second: Path) -> None:
            raise OSError(22, "Invalid argument")

        monkeypatch.setattr(cuptiprof.io.files, "_exchange", refuse)
    run = tmp_path / "run"
    result(10, "a").save(run)
    stop, wrong, reads = threading.Event(), [], []

    def read() -> None:
        while not stop.is_set():
            try:
                r = cuptiprof.open(run)
            except ResultError as e:
                if exchange or "no such" not in str(e).lower():
                    wrong.append(str(e))
                continue
            sort = {10: "a", 11: "b"}[r.metadata["rows"]]
            if len(r.kernels) != r.metadata["rows"] or set(r.kernels["name"]) != {sort}:
                wrong.append(f"{len(r.kernels)} {set(r.kernels['name'])} {r.metadata}")
            reads.append(sort)

    readers = [threading.Thread(target=read) for _ in range(2)]
    for t in readers:
        t.start()
    end = time.monotonic() + 60
    writes = 0
    while (writes < 40 or len(set(reads)) < 2 or len(reads) < 20) and time.monotonic() < end:
        result(*((10, "a") if writes % 2 else (11, "b"))).save(run, overwrite=True)
        writes += 1
    stop.set()
    for t in readers:
        t.join()
    assert wrong == [] and set(reads) == {"a", "b"}
    assert [p.name for p in tmp_path.iterdir()] == ["run"]


def test_a_run_that_is_replaced_once_its_files_are_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is read all the same, whatever has become of its folder."""
    run = tmp_path / "run"
    result(10, "a").save(run)

    def replaced(path: Path) -> OpenedFolder:
        found = OpenedFolder(path)
        result(11, "b").save(run, overwrite=True)
        return found

    monkeypatch.setattr(cuptiprof.io.runs, "OpenedFolder", replaced)
    r = cuptiprof.open(run)
    assert len(r.kernels) == 10 and set(r.kernels["name"]) == {"a"}


@pytest.mark.parametrize("times", [1, 2, 3])
def test_a_run_that_is_replaced_while_its_files_are_opened(
    times: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next one is opened, and no files of both; so often as is told, and then it is an error."""
    run, left, open_table = tmp_path / "run", [times], OpenedFolder._open_table
    result(10, "a").save(run)

    def replaced(self: OpenedFolder, name: str, folder: int) -> None:
        open_table(self, name, folder)
        if name == "kernels" and left[0]:
            left[0] -= 1
            result(11, "b").save(run, overwrite=True)

    monkeypatch.setattr(OpenedFolder, "_open_table", replaced)
    monkeypatch.setattr(cuptiprof.io.opened_folder, "MAX_TRIES", 3)
    if times == 3:
        with pytest.raises(ResultError, match="is replaced all the time: it changed 3 times"):
            cuptiprof.open(run)
        return
    r = cuptiprof.open(run)
    assert len(r.kernels) == 11 and set(r.kernels["name"]) == {"b"}


def test_writers_beside_writers(tmp_path: Path) -> None:
    """One of them wins; without overwrite the others are told."""
    run, told, barrier = tmp_path / "run", [], threading.Barrier(4)

    def save(rows: int, overwrite: bool) -> None:
        barrier.wait()
        try:
            result(rows).save(run, overwrite=overwrite)
        except ResultError as e:
            told.append(str(e))

    for overwrite in (False, True):
        threads = [threading.Thread(target=save, args=[i + 1, overwrite]) for i in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        r = cuptiprof.open(run)
        assert len(r.kernels) == r.metadata["rows"]
    assert len(told) == 3 and all("exists" in t and "another" in t for t in told)
    assert [p.name for p in tmp_path.iterdir()] == ["run"]


def test_names(tmp_path: Path) -> None:
    r = result(2)
    long_but_possible = "n" * 255
    r.save(tmp_path / long_but_possible)
    r.save(tmp_path / long_but_possible, overwrite=True)
    r.export(tmp_path / ("m" * 250 + ".json"))
    r.save(tmp_path / "not utf-8 \udcff")
    assert len(cuptiprof.open(tmp_path / "not utf-8 \udcff").kernels) == 2
    assert len(cuptiprof.open(tmp_path / long_but_possible).kernels) == 2
    for name, why in (("n" * 256, "too long"), ("a\0b", "null"), ("\ud800", "surrogate"), ("loop", "symbolic links")):
        if name == "loop":
            (tmp_path / name).symlink_to(name)
        for call in (r.save, lambda p: r.export(p, format="chrome")):
            with pytest.raises(ResultError, match=f"(?i)cannot write(.|\n)*{why}") as caught:
                call(str(tmp_path / name))  # type: ignore[operator]
            assert caught.value.hint and len(str(caught.value)) < 500
        with pytest.raises(ResultError, match=r"cannot open|no such"):
            cuptiprof.open(str(tmp_path / name))
    for call in (r.save, lambda p: r.export(p, format="chrome")):
        with pytest.raises(ResultError, match="empty"):
            call("")  # type: ignore[operator]
    with pytest.raises(ResultError, match=r"folder") as caught:
        r.export(tmp_path / long_but_possible, format="chrome")
    assert caught.value.hint


def test_files_have_the_mode_that_others_have(tmp_path: Path) -> None:
    """And the umask, which all threads share, is not touched."""
    result(1).save(tmp_path / "run")
    result(1).export(tmp_path / "a.json")
    (tmp_path / "plain").write_text("")
    (tmp_path / "folder").mkdir()
    assert (tmp_path / "a.json").stat().st_mode == (tmp_path / "plain").stat().st_mode
    assert (tmp_path / "run").stat().st_mode == (tmp_path / "folder").stat().st_mode
    assert "umask" not in Path(cuptiprof.io.files.__file__).read_text()
