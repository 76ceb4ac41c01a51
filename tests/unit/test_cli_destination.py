"""Where a run goes: said to be impossible before the script begins, and saved elsewhere when it becomes so later."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import cuptiprof
from cuptiprof.cli import main
from cuptiprof.cli.destination import destination
from cuptiprof.data.result import Result
from cuptiprof.errors import ResultError
from cuptiprof.export import formats

LAUNCH = "from cuptiprof.sim.sim_device import SimDevice; SimDevice().launch('k')\nprint('it ran')\n"


def run(*words: object, folder: Path, script: str = LAUNCH) -> subprocess.CompletedProcess[str]:
    (folder / "script.py").write_text(script)
    command = [sys.executable, "-m", "cuptiprof", "run", "--device", "sim", *map(str, words), "script.py"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=100)


@pytest.mark.parametrize(
    "words,message",
    [
        (("-o", "x.txt"), "writes no .txt files"),
        (("-o", "p.prof"), "writes no .prof files"),
        (("-o", "report.nsys-rep"), "writes no .nsys-rep files"),
        (("-o", "trace.json.zst"), "writes no .zst files"),
        (("-o", "no/folder"), "make the folder first"),
        (("-o", "no/trace.json"), "make the folder first"),
        (("-o", ""), "empty"),
        (("-o", "there"), "exists"),
        (("-o", "there.json"), "exists"),
        (("-f", "-o", "other"), "is not a saved run"),
        (("-f", "-o", "folder.json"), "give the name of a file"),
        (("-o", "run-%q{NO_SUCH_VARIABLE}"), "NO_SUCH_VARIABLE is not set"),
        (("--limit", "-3"), "-3"),
        (("--limit", "many"), "many"),
        (("--timeout", "nan"), "positive number of seconds"),
        (("--launch-count", "-1"), "-1"),
        (("--log-file", "no/log.txt"), "make the folder first"),
        (("--log-file", "other"), "give the name of a file"),
    ],
)
def test_what_cannot_be_is_said_before_the_script_begins(words: tuple[str, ...], message: str, tmp_path: Path) -> None:
    Result({}).save(tmp_path / "there")
    (tmp_path / "there.json").write_text("mine")
    for folder in ("other", "folder.json"):
        (tmp_path / folder).mkdir()
    before = sorted(tmp_path.rglob("*"))
    done = run(*words, folder=tmp_path)
    assert done.returncode in (1, 2) and message in done.stderr, done.stderr
    assert "Traceback" not in done.stderr and done.stdout == ""
    assert sorted(p for p in tmp_path.rglob("*") if p.name != "script.py") == before
    assert (tmp_path / "there.json").read_text() == "mine"


@pytest.mark.parametrize("name", ["run", "run.cuptiprof", "trace.json", "trace.json.gz", "run-1.5", "run.%h"])
def test_what_can_be_is_written(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("socket.gethostname", lambda: "node1.cluster.example")
    place = destination(str(tmp_path / name), overwrite=False)
    assert list(tmp_path.iterdir()) == []  # nothing was left of the attempt
    assert place.write_or_beside(Result({}))
    (file,) = tmp_path.iterdir()
    assert file.name == name.replace("%h", "node1.cluster.example")
    cuptiprof.open(file)
    with pytest.raises(ResultError, match="exists"):
        destination(str(tmp_path / name), overwrite=False)
    assert destination(str(tmp_path / name), overwrite=True).write_or_beside(Result({}))


@pytest.mark.parametrize("name", ["made.cuptiprof", "made.json"])
def test_a_file_that_came_meanwhile_is_not_replaced(name: str, tmp_path: Path) -> None:
    script = LAUNCH + f"open({name!r}, 'w').write('mine')\n"
    done = run("-o", name, folder=tmp_path, script=script)
    assert done.returncode == 1 and "saved instead:" in done.stderr and "Overview" in done.stderr
    assert (tmp_path / name).read_text() == "mine"
    beside = name.replace("made", "made-2")
    assert f"{tmp_path / beside}" in done.stderr and len(cuptiprof.open(tmp_path / beside).kernels) == 1


@pytest.mark.parametrize("name", ["run.cuptiprof", "trace.json.gz"])
def test_a_folder_that_went_meanwhile(name: str, tmp_path: Path) -> None:
    (tmp_path / "gone").mkdir()
    (tmp_path / "tmp").mkdir()
    script = LAUNCH + "import os; os.rmdir('gone'); os.environ['TMPDIR'] = os.path.abspath('tmp')\n"
    done = run("-o", f"gone/{name}", folder=tmp_path, script=script)
    assert done.returncode == 1 and "cannot write" in done.stderr and "saved instead:" in done.stderr
    assert "Overview" in done.stderr  # the report is printed all the same
    (saved,) = (tmp_path / "tmp").iterdir()
    assert str(saved) in done.stderr and len(cuptiprof.open(saved).kernels) == 1


def test_a_failure_that_is_no_error_of_ours_loses_neither_report_nor_status(tmp_path: Path) -> None:
    script = LAUNCH + "import sys; sys.modules['pyarrow'] = None; sys.exit(7)\n"
    done = run("-o", "run", folder=tmp_path, script=script)
    assert done.returncode == 7 and "Overview" in done.stderr
    assert "cannot write" in done.stderr and "pyarrow" in done.stderr and "Traceback" not in done.stderr


def test_one_rule_for_every_way_to_write(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What is there stays, unless it is said that it is to go."""
    run_, trace = tmp_path / "run", tmp_path / "trace.json"
    result = Result({})
    for write in (lambda **k: result.save(run_, **k), lambda **k: result.export(trace, **k)):
        write()
        with pytest.raises(ResultError, match="exists") as refused:
            write()
        assert "-f" in refused.value.hint and "overwrite=True" in refused.value.hint
        write(overwrite=True)
    assert main(["export", str(run_), "-o", str(trace)]) == 1
    assert "exists" in capsys.readouterr().err
    assert main(["export", str(run_), "-f", "-o", str(trace)]) == 0
    result.export_chrome_trace(trace)  # torch.profiler's name, and its habit


def test_an_export_that_is_overtaken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two processes that write one name: the later one says so."""
    trace = tmp_path / "trace.json"
    write = formats.find_format("trace.json", "chrome").write

    def slow(*arguments: object) -> None:
        write(*arguments)  # type: ignore[arg-type,misc]
        trace.write_text("theirs")

    monkeypatch.setattr(formats, "FORMATS", (formats.Format("chrome", (".json",), slow, ""),))
    with pytest.raises(ResultError, match="exists"):
        Result({}).export(trace)
    assert trace.read_text() == "theirs" and os.listdir(tmp_path) == ["trace.json"]
