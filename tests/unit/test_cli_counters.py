"""Options of ``run`` that ask for counters, from the words of a command line to ``profile()`` and back to a report."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path

import pytest
from metric_results import replayed

import cuptiprof
from cuptiprof.cli import main, make_parser
from cuptiprof.cli.metric_arguments import are_metrics, counter_options, counter_views, take_short_option
from cuptiprof.errors import MetricError

SCRIPT = """
import sys
import cuptiprof
from cuptiprof.sim.sim_device import SimDevice
print("out", sys.argv[1:])
with cuptiprof.region("work"):
    SimDevice().launch("_Z6kernelPf", count=5)
    SimDevice().launch("sgemm", count=2)
"""


@pytest.fixture
def script(tmp_path: Path) -> Path:
    file = tmp_path / "script.py"
    file.write_text(SCRIPT)
    return file


def run(*arguments: object, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "cuptiprof", "run", "--device", "sim", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd)


def parsed(*words: str) -> argparse.Namespace:
    return make_parser().parse_args(["run", *words])


def test_options_become_keywords() -> None:
    options = counter_options(
        parsed("--metrics", "ipc, achieved_occupancy", "--metrics=ipc,gld_efficiency", "-e", "active_cycles", "--analysis-metrics",
               "--set", "basic", "--section", "Occupancy", "--replay-mode", "iterate", "--sampling-interval", "50us",
               "--explain", "x.py")
    )  # fmt: skip
    assert options == {
        "metrics": ["ipc", "achieved_occupancy", "gld_efficiency", "analysis"], "events": ["active_cycles"], "set": "basic",
        "section": "Occupancy", "strategy": "iterate", "sampling_interval": "50us", "explain": True,
    }  # fmt: skip
    assert counter_options(parsed("--section", "A", "--section", "B", "--pm-sampling-interval", "2000", "x.py")) == {
        "section": ["A", "B"], "strategy": "auto", "sampling_interval": 2000,
    }  # fmt: skip
    assert counter_options(parsed("x.py")) == {}
    assert counter_options(parsed("--metrics", "ipc", "--replay-mode", "kernel", "x.py"))["strategy"] == "replay"


@pytest.mark.parametrize(
    "words", [("--explain",), ("--replay-mode", "sample"), ("--sampling-interval", "5"), ("--metrics", ","), ("-e", "")]
)
def test_options_of_counters_need_counters(words: tuple[str, ...]) -> None:
    with pytest.raises(MetricError) as error:
        counter_options(parsed(*words, "x.py"))
    assert error.value.hint


def test_views_follow_what_was_asked() -> None:
    assert counter_views(parsed("--metrics", "ipc", "-e", "active_cycles", "x.py")) == ["metrics", "events"]
    assert counter_views(parsed("--set", "basic", "x.py")) == ["sections"]
    assert counter_views(parsed("--analysis-metrics", "x.py")) == ["metrics"]
    assert counter_views(parsed("x.py")) == []


@pytest.mark.parametrize(
    "text,metrics",
    [("ipc", True), ("ipc,gld_efficiency", True), ("all", True), ("sm__cycles_active.avg", True), ("active_cycles", True),
     ("json", False), ("cuptiprof.cli", False), ("ipc,nope", False), (",", False), ("no_such_module", False)],
)  # fmt: skip
def test_metrics_and_modules_are_told_apart(text: str, metrics: bool) -> None:
    assert are_metrics(text) is metrics


def test_a_module_beside_the_script_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "ipc.py").touch()
    monkeypatch.chdir(tmp_path)
    assert not are_metrics("ipc") and are_metrics("ipc,ipc")


def test_short_option_of_nvprof() -> None:
    a = take_short_option(
        parsed("--device", "sim", "-m", "ipc,gld_efficiency", "-c", "3", "-m", "achieved_occupancy", "x.py", "-c", "9")
    )
    assert a.metrics == ["ipc,gld_efficiency", "achieved_occupancy"] and a.script == "x.py" and a.args == ["-c", "9"]
    assert (a.device, a.launch_count, a.module) == ("sim", 3, False)
    a = take_short_option(parsed("-m", "ipc", "-m", "json.tool", "file"))
    assert a.metrics == ["ipc"] and a.module and a.script == "json.tool" and a.args == ["file"]
    a = take_short_option(parsed("-m", "json.tool", "file"))
    assert a.metrics is None and a.module
    assert take_short_option(parsed("-m", "ipc")).module  # nothing is left to run: an error about the module is to come


def test_run_counts_and_prints_nvprofs_table(script: Path, tmp_path: Path) -> None:
    done = run("-m", "ipc,achieved_occupancy", "--explain", "-o", tmp_path / "run", script, "a")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "out ['a']\n"
    assert "Metric result" in done.stderr and "SIMULATED" in done.stderr and "sm__inst_executed" in done.stderr
    saved = cuptiprof.open(tmp_path / "run")
    assert list(saved.counters) == ["ipc", "achieved_occupancy"]
    assert (saved.kernels["ipc"] > 0).all() and len(saved.kernels) == 7
    rows = {row["kernel"]: row["invocations"] for row in saved.report("metrics").rows if row["metric"] == "ipc"}
    assert rows == {"kernel(float*)": 5, "sgemm": 2}


def test_application_replay_gives_what_kernel_replay_gives(script: Path, tmp_path: Path) -> None:
    names = "ipc,achieved_occupancy,gld_efficiency,l2_tex_hit_rate,dram_read_throughput"
    for mode in ("kernel", "application"):
        done = run("--metrics", names, "--replay-mode", mode, "-o", tmp_path / mode, "-q", script)
        assert done.returncode == 0, done.stderr
        assert done.stdout == "out []\n"  # one run's output, however often it ran
    kernel, application = (cuptiprof.open(tmp_path / mode) for mode in ("kernel", "application"))
    assert application.metadata["counters"]["strategy"] == "application"
    for name in names.split(","):
        assert application.counters[name].tolist() == pytest.approx(kernel.counters[name].tolist(), rel=0.02), name


def test_unknown_metrics_are_one_clear_error(script: Path) -> None:
    for mode in ("auto", "application"):
        done = run("--metrics", "achieved_ocupancy", "--replay-mode", mode, script)
        assert done.returncode == 1 and "achieved_occupancy" in done.stderr and "Traceback" not in done.stderr
        assert done.stdout == ""


@pytest.mark.parametrize(
    "view", ["metrics", "events", "sections", "memory-path", "priorities", "samples", "metrics-long"]
)
def test_report_views(view: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    replayed().save(tmp_path / "run")
    assert main(["report", str(tmp_path / "run"), "--view", view, "--format", "json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["view"] == view and shown["rows"]


def test_gemm_check() -> None:
    pytest.importorskip("torch")
    example = Path(__file__).parents[2] / "examples" / "gemm_check.py"
    command = [sys.executable, str(example), "--device", "sim", "--peak-gflops", "6000", "512", "64", "512"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["expected_flop"] == 2 * 512 * 64 * 512 and found["time_at_peak_us"] == pytest.approx(5.592, abs=1e-3)
    assert found["gflops"] == pytest.approx(found["expected_flop"] / found["time_us"] / 1e3)
    assert found["percent_of_peak"] == pytest.approx(found["gflops"] / 60) and found["counted_flop"] > 0
