"""Runs, exports and reports at addresses (``memory://``, ``file://``, others through fsspec): the same as on a disk, and no secret is told."""

from __future__ import annotations

import builtins
import importlib
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from conftest import trace_path
from hypothesis import given
from hypothesis import strategies as st
from report_results import make_result, training_step

import cuptiprof
from cuptiprof.cli import main
from cuptiprof.cli.destination import destination
from cuptiprof.errors import CuptiprofError, ResultError
from cuptiprof.export.formats import FORMATS
from cuptiprof.io.rank_folder import open_ranks
from cuptiprof.text.addresses import absolute, is_address, redacted, shown_path


def same(one: cuptiprof.Result, other: cuptiprof.Result) -> bool:
    """By what is shown of each row: NaN is the same as NaN."""
    return all(repr(list(table.rows())) == repr(list(other.tables[name].rows())) for name, table in one.tables.items())


def test_a_run_comes_back(memory: Any) -> None:
    result = training_step()
    result.save("memory://bucket/run")
    assert memory.exists("/bucket/run/run.json") and not any("/." in name for name in memory.store)
    assert same(cuptiprof.open("memory://bucket/run"), result)
    with pytest.raises(ResultError, match="memory://bucket/run exists") as refused:
        result.save("memory://bucket/run")
    assert "overwrite=True" in refused.value.hint
    make_result({"kernels": [{"name": "k", "start": 0, "end": 5}]}).save("memory://bucket/run", overwrite=True)
    assert len(cuptiprof.open("memory://bucket/run").kernels) == 1
    assert not [name for name in memory.store if "regions" in name]  # nothing of the old one


def test_what_is_no_run_is_not_replaced(memory: Any) -> None:
    memory.pipe_file("/bucket/mine/notes.txt", b"mine")
    with pytest.raises(ResultError, match="not a saved run and is not replaced"):
        training_step().save("memory://bucket/mine", overwrite=True)
    with pytest.raises(ResultError, match="it is a folder"):
        training_step().export("memory://bucket/mine", format="chrome", overwrite=True)
    assert list(memory.store) == ["/bucket/mine/notes.txt"]


@pytest.mark.parametrize("suffix", [f.suffixes[0] for f in FORMATS if not f.name.startswith("memory")])
def test_exports(suffix: str, memory: Any, tmp_path: Path) -> None:
    result = training_step()
    result.export(f"memory://bucket/x{suffix}")
    result.export(tmp_path / f"x{suffix}")
    assert memory.exists(f"/bucket/x{suffix}") and list(memory.store) == [f"/bucket/x{suffix}"]
    if not suffix.startswith((".sqlite", ".nvprof")):
        assert memory.cat_file(f"/bucket/x{suffix}") == (tmp_path / f"x{suffix}").read_bytes()
    with pytest.raises(ResultError, match="exists"):
        result.export(f"memory://bucket/x{suffix}")


def test_traces_and_folders_of_ranks(memory: Any) -> None:
    memory.put_file(str(trace_path("alexnet-a100")), "/b/trace.json.gz")
    assert same(cuptiprof.open("memory://b/trace.json.gz"), cuptiprof.open(trace_path("alexnet-a100")))
    for rank in (0, 1):
        result = training_step()
        result.metadata["rank"] = rank
        result.save(f"memory://job/rank-{rank}.cuptiprof")
    memory.pipe_file("/job/rank-2.cuptiprof/run.json", b"{")
    found = open_ranks("memory://job")
    assert [r.metadata["rank"] for r in found] == [0, 1]
    assert "LEFT OUT: memory://job/rank-2.cuptiprof" in found[0].metadata["note"]
    with pytest.raises(ResultError, match="memory://job holds 3 runs"):
        cuptiprof.open("memory://job")


def test_this_machine(tmp_path: Path) -> None:
    training_step().save(f"file://{tmp_path}/run")
    assert same(cuptiprof.open(f"file://{tmp_path}/run"), cuptiprof.open(tmp_path / "run"))
    training_step().export(f"file://{tmp_path}/t.json")
    assert (tmp_path / "t.json").exists() and len(open_ranks(f"file://{tmp_path}/t.json")) == 1


def test_the_command_line(memory: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JOB", "j/7")
    assert main(["demo", "-o", "memory://b/%q{JOB}-%p.cuptiprof"]) == 0
    run = f"memory://b/j_7-{os.getpid()}.cuptiprof"
    assert len(cuptiprof.open(run).kernels)
    assert main(["export", run, "-o", "memory://b/t.json.gz"]) == 0
    assert main(["report", run, "--view", "summary", "--csv", "--log-file", "memory://b/s.csv"]) == 0
    capsys.readouterr()
    assert main(["report", run, "--view", "summary", "--csv"]) == 0
    assert memory.cat_file("/b/s.csv").decode() == capsys.readouterr().out
    assert main(["demo", "-o", run]) == 1 and "exists" in capsys.readouterr().err
    assert main(["demo", "-o", "memory://b/x.txt"]) == 1 and "writes no .txt" in capsys.readouterr().err
    assert main(["report", "memory://b/nothing"]) == 1
    assert "no such run or trace: memory://b/nothing" in capsys.readouterr().err


def test_it_is_saved_here_when_it_cannot_be_there(
    memory: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    place = destination("memory://b/run.cuptiprof", overwrite=False)
    assert not memory.store  # nothing was left of the trial
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    def fails(*_: object, **__: object) -> None:
        raise PermissionError("the credentials have expired")

    monkeypatch.setattr(type(memory), "put_file", fails)
    assert not place.write_or_beside(training_step())
    error = capsys.readouterr().err
    assert "the credentials have expired" in error and f"saved instead: {tmp_path}" in error
    (saved,) = tmp_path.glob("*.cuptiprof")
    assert same(cuptiprof.open(saved), training_step())


def test_nothing_is_there_when_writing_fails(memory: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[str] = []
    put = type(memory).put_file

    def third_fails(self: Any, local: str, there: str, **more: Any) -> None:
        sent.append(there)
        if len(sent) == 3:
            raise ConnectionError("cut")
        put(self, local, there, **more)

    monkeypatch.setattr(type(memory), "put_file", third_fails)
    with pytest.raises(ResultError, match="cannot write memory://b/run: cut"):
        training_step().save("memory://b/run")
    assert not memory.exists("/b/run/run.json")
    with pytest.raises(ResultError):
        cuptiprof.open("memory://b/run")


@pytest.mark.parametrize("key", ["/run/../../etc/passwd", "/run/a/../../x", "/elsewhere/x", "/run//x", "/run/."])
def test_names_that_lead_out_of_the_folder(
    key: str, memory: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory.pipe_file("/run/run.json", b"{}")
    monkeypatch.setattr(type(memory), "find", lambda *_, **__: ["/run/run.json", key])
    monkeypatch.setattr(type(memory), "get_file", lambda *_, **__: None)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.raises(ResultError, match="leads out of the folder"):
        cuptiprof.open("memory://run")
    assert not list(tmp_path.iterdir())


def test_a_run_that_is_replaced_while_it_is_fetched(memory: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    training_step().save("memory://b/run")
    get, changes = type(memory).get_file, [1]

    def replaced(self: Any, key: str, local: str, **more: Any) -> None:
        get(self, key, local, **more)
        if changes and key.endswith("run.json"):
            changes.pop()
            make_result({"kernels": [{"name": "new", "start": 0, "end": 5}]}).save("memory://b/run", overwrite=True)

    monkeypatch.setattr(type(memory), "get_file", replaced)
    assert list(cuptiprof.open("memory://b/run").kernels["name"]) == ["new"]


@pytest.mark.parametrize(
    ("address", "package"),
    [("s3://b/run", "s3fs"), ("gs://b/run", "gcsfs"), ("abfs://c@a.dfs.core.windows.net/run", "adlfs")],
)
def test_a_package_that_is_missing_is_named(address: str, package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    scheme = address.partition(":")[0]
    monkeypatch.delitem(importlib.import_module("fsspec.registry")._registry, scheme, raising=False)
    for try_it in (lambda: cuptiprof.open(address), lambda: destination(address, overwrite=False)):
        with pytest.raises(ResultError) as refused:
            try_it()
        assert package in str(refused.value) and refused.value.hint == f"pip install {package}"


def test_without_fsspec(monkeypatch: pytest.MonkeyPatch) -> None:
    usual = builtins.__import__

    def without(name: str, *rest: Any) -> Any:
        if name.startswith("fsspec"):
            raise ImportError(name)
        return usual(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ResultError, match="need fsspec") as refused:
        cuptiprof.open("s3://b/run")
    assert "cuptiprof[remote]" in refused.value.hint


def test_schemes_that_nobody_knows() -> None:
    with pytest.raises(ResultError, match="nosuch://x/run"):
        destination("nosuch://x/run", overwrite=False)


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("s3://AKIA1234:s3cr3tKEY@bucket/run", "s3://***@bucket/run"),
        ("https://host/t.json?X-Amz-Signature=abcdef", "https://host/t.json?***"),
        ("https://host/t.json#token", "https://host/t.json?***"),
        ("abfs://data@account.dfs.core.windows.net/run", "abfs://data@account.dfs.core.windows.net/run"),
        ("simplecache::s3://key:s3cr3t@b/run", "simplecache::s3://***@b/run"),
        ("sftp://me:password@host/run", "sftp://***@host/run"),
        ("memory://b/\x1b[31mrun", "'memory://b/\\x1b[31mrun'"),
    ],
)
def test_what_is_shown(address: str, shown: str) -> None:
    assert shown_path(address) == shown


SECRETS = st.text("abcdefghXYZ0123456789%+_-", min_size=6, max_size=30)


@given(user=SECRETS, password=SECRETS, token=SECRETS)
def test_no_secret_is_told(user: str, password: str, token: str) -> None:
    address = f"nosuch://{user}:{password}@host/x.json?sig={token}"
    with pytest.raises(CuptiprofError) as refused:
        cuptiprof.open(address)
    message = str(refused.value).replace("nosuch", "").replace("host/x.json", "")
    for secret in (user, password, token):
        assert secret not in message
    library = f"403: {address} with key {user}, {password}; signature {token}"
    assert not any(secret in redacted(library, address) for secret in (user, password, token))


@pytest.mark.parametrize("path", ["run", "/a/b", "C:/x", "a:b", "s3:/b", "://x", "file:///x", "local:///x", "1s://x"])
def test_paths_are_paths(path: str) -> None:
    assert not is_address(path)


def test_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert absolute("x") == str(tmp_path / "x") and absolute("s3://b/x") == "s3://b/x"
    assert absolute("file:///x") == "/x"
