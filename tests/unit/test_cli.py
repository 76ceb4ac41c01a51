"""The command line as a user types it."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import trace_path

import cuptiprof
from cuptiprof.cli import main
from cuptiprof.cli.output import expand
from cuptiprof.errors import ResultError

SCRIPT = """
import os, signal, sys
import cuptiprof
from cuptiprof.sim.sim_device import SimDevice
print("out", sys.argv[1:])
with cuptiprof.region("work"):
    SimDevice().launch("_Z6kernelPf", count=5)
    SimDevice().launch("sgemm", count=2)
what = sys.argv[1] if len(sys.argv) > 1 else ""
if what == "raise": raise ValueError("boom")
if what == "exit": sys.exit(7)
if what == "message": sys.exit("said")
if what == "int": os.kill(os.getpid(), signal.SIGINT)
if what == "term": os.kill(os.getpid(), signal.SIGTERM)
"""


@pytest.fixture
def script(tmp_path: Path) -> Path:
    file = tmp_path / "script.py"
    file.write_text(SCRIPT)
    return file


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "cuptiprof", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True)


@pytest.mark.parametrize(
    "what,status,stderr",
    [("", 0, ""), ("raise", 1, "ValueError: boom"), ("exit", 7, ""), ("message", 1, "said"), ("int", -signal.SIGINT, "KeyboardInterrupt"), ("term", -signal.SIGTERM, "")],
)  # fmt: skip
def test_the_script_does_what_it_would_have_done(
    script: Path, tmp_path: Path, what: str, status: int, stderr: str
) -> None:
    done = run("run", "--device", "sim", "-o", tmp_path / "run", script, *([what] if what else []))
    assert done.returncode == status
    assert done.stdout == f"out {[what] if what else []}\n"
    assert stderr in done.stderr
    assert "cuptiprof/cli/run_command.py" not in done.stderr  # tracebacks begin in the script
    saved = cuptiprof.open(tmp_path / "run")
    assert len(saved.kernels) == 7 and set(saved.kernels["region"]) == {"work"}


def test_module_and_filters(script: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "cuptiprof", "run", "--device", "sim", "-k", "regex:gemm", "-c", "1", "-o", "t.json", "-m", "script"],
        cwd=tmp_path, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert list(cuptiprof.open(tmp_path / "t.json").kernels["name"]) == ["sgemm"]
    done = run("run", "--device", "sim", "--kernels", "::kernel:2", "--print-gpu-trace", "--csv", "--log-file", tmp_path / "%p.csv", script)  # fmt: skip
    assert done.returncode == 0 and done.stderr == ""
    (log,) = tmp_path.glob("*.csv")
    assert log.stem.isdigit() and log.read_text().count("kernel(float*)") == 1
    assert "nearest names were: sgemm" in run("run", "--device", "sim", "-k", "sgem", script).stderr


@pytest.mark.parametrize(
    "arguments,message",
    [
        (("run", "--devise", "sim", "x.py"), "did you mean --device?"),
        (("run", "nowhere.py"), "no such script"),
        (("run", "--device", "warp", __file__), "unknown device"),
        (("run", "--device", "sim", "-k", "regex:(", __file__), "hint"),
        (("run", "--device", "sim", "--budget", "3 apples", __file__), "cannot read"),
        (("report", "nowhere"), "no such run"),
        (("report", str(trace_path("triton-a100")), "-u", "hours"), "invalid choice"),
        (("export", str(trace_path("triton-a100")), "-o", "x.nope"), "known formats"),
        (("nonsense",), "invalid choice"),
    ],
)
def test_mistakes_get_one_clear_error(arguments: tuple[str, ...], message: str) -> None:
    done = run(*arguments)
    assert done.returncode in (1, 2)
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_a_mistyped_command() -> None:
    done = run("rnu", "x.py")
    assert done.returncode == 2 and "did you mean run?" in done.stderr and "Traceback" not in done.stderr


def test_help_has_examples() -> None:
    for command in ("demo", "run", "report", "export", "doctor"):
        done = run(command, "--help")
        assert done.returncode == 0 and "examples:" in done.stdout


@pytest.mark.parametrize("view", ["summary", "gpu-trace", "api-trace", "regions"])
def test_report_json(view: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(trace_path("alexnet-a100")), "--view", view, "--format", "json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert isinstance(data["rows"], list) and data["rows"]
    assert set(data["losses"]) == set(cuptiprof.Result({}).losses)
    if view == "summary":
        wanted = {"block", "name", "calls", "time_ns", "avg_ns", "min_ns", "max_ns", "percent"}
        assert all(wanted <= set(row) for row in data["rows"])
        for block in ("GPU activities", "API calls"):
            assert sum(r["percent"] for r in data["rows"] if r["block"] == block) == pytest.approx(100)


@pytest.mark.parametrize("form", ["text", "rich", "markdown", "csv"])
def test_hostile_names_do_no_harm(form: str, tmp_path: Path) -> None:
    name = "=cmd|'x'!A1 <script>alert(1)</script> [bold]x[/bold] \x1b[31mred\x07 | `a`"
    event = {"ph": "X", "cat": "kernel", "name": name, "ts": 1, "dur": 2, "args": {"correlation": 1}}
    file = tmp_path / "t.json"
    file.write_text(json.dumps({"traceEvents": [event]}))
    text = cuptiprof.open(file).summary().to(form, width=200)  # wide enough for the whole name
    assert "\x1b[31mred" not in text and "\x07" not in text
    assert "[bold]" in text or form == "markdown"
    if form == "markdown":
        assert "<script>" not in text
    if form == "csv":
        assert "\n=cmd" not in text and ",=cmd" not in text


def test_demo_and_its_pipe(tmp_path: Path) -> None:
    done = run("demo", "--limit", "3", "-o", tmp_path / "demo")
    assert done.returncode == 0
    assert "SIMULATED" in done.stdout and "## backward ##" in done.stdout
    assert len(cuptiprof.open(tmp_path / "demo").kernels) == 4350
    piped = subprocess.run(f"{sys.executable} -m cuptiprof demo | head -1", shell=True, capture_output=True, text=True)
    assert "Traceback" not in piped.stderr


def test_placeholders(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_RANK", "3/4")
    assert expand("a-%q{MY_RANK}-%%") == "a-3_4-%"
    assert expand("%p").isdigit() and expand("%h")
    for bad in ("%x", "%q{NOT_SET_AT_ALL}", "%"):
        with pytest.raises(ResultError):
            expand(bad)


@pytest.mark.parametrize(
    "words,meant,not_meant",
    [
        (["run", "--view", "sumary", "x.py"], "did you mean summary?", "did you mean --"),
        (["run", "--replay-mode", "kernl", "x.py"], "did you mean kernel?", "did you mean --"),
        (["run", "--limit", "-3", "x.py"], "--limit", "did you mean"),
        (["run", "--veiw=summary", "x.py"], "did you mean --view?", ""),
        (["bench", "x.py", "--format", "jsn"], "did you mean json?", "did you mean --"),
        (["run"], "script.py|module", "args"),
    ],
)
def test_hints_are_about_what_was_mistyped(words: list[str], meant: str, not_meant: str) -> None:
    done = run(*words)
    assert done.returncode == 2 and meant in done.stderr, done.stderr
    assert not not_meant or not_meant not in done.stderr, done.stderr


def test_several_views_are_one_json_document(script: Path, tmp_path: Path) -> None:
    done = run("run", "--device", "sim", "--log-file", "%1", "-o", tmp_path / "run", "--format", "json",
               "--view", "summary", "--view", "regions", script)  # fmt: skip
    shown = json.loads(done.stdout.partition("\n")[2])  # after what the script prints
    assert [report["view"] for report in shown] == ["summary", "regions"]
    done = run("report", tmp_path / "run", "--format", "json", "--view", "regions", "--view", "api-trace")
    assert [report["view"] for report in json.loads(done.stdout)] == ["regions", "api-trace"]


@pytest.mark.parametrize("view", ["overview", "summary", "gpu-trace", "priorities"])
def test_a_filter_that_keeps_nothing_does_not_say_that_nothing_ran(view: str, script: Path, tmp_path: Path) -> None:
    done = run("run", "--device", "sim", "-k", "*nothing*", "--view", view, script)
    assert "were recorded" not in done.stderr and "the filter left out all 7 kernels that came" in done.stderr
    run("run", "--device", "sim", "-q", "-o", tmp_path / "run", script)
    done = run("report", tmp_path / "run", "-k", "sgem", "--view", view)
    assert "the filter left out all 7 kernels" in done.stdout and "nearest names were: sgemm" in done.stdout


def test_chips_by_the_names_of_their_products(script: Path) -> None:
    assert "Metrics of GH100:" in run("metrics", "ipc", "--chip", "h100").stdout
    assert "chip A100" in run("run", "--device", "sim:GA100", script).stderr
    assert "did you mean H100?" in run("run", "--device", "sim:H10", script).stderr
