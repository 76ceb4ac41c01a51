"""What ``-o`` takes it can write, and what it cannot write it refuses before there is anything to write."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from report_results import make_result, training_step

import cuptiprof
from cuptiprof.cli import main
from cuptiprof.cli.destination import Destination, destination
from cuptiprof.data.result import Result
from cuptiprof.errors import CuptiprofError, ResultError
from cuptiprof.export.formats import FORMATS, RUN_SUFFIX

SUFFIXES = [suffix for f in FORMATS for suffix in f.suffixes]
OTHERS = [
    ".txt",
    ".html",
    ".nsys-rep",
    ".ncu-rep",
    ".prof",
    ".zip",
    ".json.zst",
    ".json.bz2",
    ".xlsx",
    ".db",
    ".gz",
    ".pb.zst",
]
ACTIVITIES = "kernel,memcpy,allocator"


def whole() -> Result:
    """A run with something for every format."""
    step = training_step()
    rows = {name: list(table.rows()) for name, table in step.tables.items() if len(table)}
    event = {"timestamp": 5, "action": 1, "bytes": 512, "address": 4096, "thread": 70}
    return make_result({**rows, "allocator_events": [event]}, {**step.metadata, "clock_pairs": [[0, 10**18]]})


@settings(max_examples=150, deadline=None)
@given(
    stem=st.from_regex(r"[a-z][a-z0-9_-]{0,8}", fullmatch=True),
    suffix=st.sampled_from([*SUFFIXES, *OTHERS, RUN_SUFFIX, "", ".1", "-%p", ".%h"]),
    folder=st.sampled_from(["", "missing/", "file/", "memory://b/", "nosuch://b/"]),
    activities=st.sampled_from([None, "kernel", ACTIVITIES]),
)
def test_what_is_taken_can_be_written(stem: str, suffix: str, folder: str, activities: str | None) -> None:
    with tempfile.TemporaryDirectory() as here:
        Path(here, "file").write_text("")
        name = f"{folder}{stem}{suffix}" if "://" in folder else f"{here}/{folder}{stem}{suffix}"
        try:
            place = destination(name, overwrite=True, activities=activities)
        except CuptiprofError as e:
            assert e.hint, e
            refused = suffix in OTHERS or folder in ("missing/", "file/", "nosuch://b/")
            needed = next((f.activity for f in FORMATS if name.endswith(f.suffixes)), "")
            assert refused or (needed and needed not in (activities or "").split(",")), e
            assert os.listdir(here) == ["file"]  # nothing was left of the attempt
            return
        place.write(whole(), bar=False)
        if "://" not in folder:
            assert Path(place.path).exists() and len(os.listdir(here)) == 2


@pytest.mark.parametrize("suffix", [s for f in FORMATS if f.activity for s in f.suffixes])
def test_formats_of_what_is_not_collected(suffix: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script = tmp_path / "script.py"
    script.write_text("print('it ran')")
    assert main(["run", "--device", "sim", "-o", f"{tmp_path}/x{suffix}", str(script)]) == 1
    out, error = capsys.readouterr()
    assert "it ran" not in out and "'allocator'" in error and ",allocator" in error
    assert main(["demo", "-o", f"{tmp_path}/x{suffix}"]) == 1


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_export_refuses_before_it_reads(suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def opened(*_: Any) -> None:
        raise AssertionError("it was read")

    monkeypatch.setattr("cuptiprof.cli.export_command.open_run", opened)
    (tmp_path / f"there{suffix}").write_text("mine")
    for name in (f"there{suffix}", f"no/x{suffix}", f"x{suffix}.txt"):
        assert main(["export", "run", "-o", str(tmp_path / name)]) == 1
    assert main(["export", "run", "-o", f"nosuch://x{suffix}"]) == 1
    assert (tmp_path / f"there{suffix}").read_text() == "mine"


@pytest.mark.parametrize("option", ["--plot", "--histograms", "--roofline", "--html"])
def test_bench_refuses_before_it_measures(option: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "bench_it.py"
    file.write_text(
        "import cuptiprof\n@cuptiprof.benchmark(params={'n': [1, 2]})\ndef f(n): return lambda: print('measured')\n"
    )
    name = tmp_path / "no" / ("x.html" if option == "--html" else "x.svg")
    more = ["--x", "n"] if option == "--plot" else []
    assert main(["bench", str(file), "--device", "host", option, str(name), *more]) != 0
    out, error = capfd.readouterr()
    assert "measured" not in out and ("make the folder first" in error or "no parameter" in error), error


def test_a_format_that_cannot_be_written_leaves_a_saved_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    snapshot = next(f for f in FORMATS if f.name == "memory-snapshot")
    assert not Destination(str(tmp_path / "x.pickle"), snapshot, False).write_or_beside(training_step())
    (saved,) = (tmp_path / "tmp").iterdir()
    error = capsys.readouterr().err
    assert f"saved instead: {saved}" in error and "no history" in error
    assert len(cuptiprof.open(saved).kernels) == len(training_step().kernels)


def test_an_address_without_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "s3fs", None)
    with pytest.raises(ResultError, match="s3fs"):
        destination("s3://bucket/run", overwrite=False)
