"""The command lines of the seeds, word by word, after ``nvprof`` or ``nsys profile`` became ``cuptiprof run``.

Two words differ, and each is refused with what to write instead: the suffix `.prof` is not written, and ``nvprof --query-metrics``
is ``cuptiprof metrics --query-metrics``.
"""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import cuptiprof

SCRIPT = """
import sys
import cuptiprof
from cuptiprof.sim.sim_device import Op, SimDevice
sim = SimDevice()
sim.launch("volta_sgemm_64x64_nt", count=3)
sim.call(Op.PROFILER_START)
with cuptiprof.region("fwd"):
    for name in ("volta_sgemm_64x64_nt", "turing_h1688gemm_s884_tn", "elementwise"):
        sim.launch(name, count=4)
sim.call(Op.PROFILER_STOP)
print("ran", sys.argv[1:])
"""


@pytest.fixture(autouse=True)
def scripts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("train.py", "myapp.py"):
        (tmp_path / name).write_text(SCRIPT)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CUPTIPROF_DEVICE", "sim:V100")


def run(line: str) -> subprocess.CompletedProcess[str]:
    words = shlex.split(line)
    assert words[0] == "cuptiprof"
    return subprocess.run([sys.executable, "-m", *words], capture_output=True, text=True, timeout=200)


# Seed and checklist row, the words, what the log must hold, and how many kernels were kept (or None: not looked at).
LOGS = [
    ("S041", "cuptiprof run --log-file profile.log python train.py", "volta_sgemm_64x64_nt"),
    ("S082", "cuptiprof run --log-file timing.log python myapp.py args", "volta_sgemm_64x64_nt"),
    ("S083", "cuptiprof run --print-gpu-traces --log-file traces.log python myapp.py", "SSMem"),
    ("S083", "cuptiprof run --print-gpu-trace --log-file traces.log python myapp.py", "Grid Size"),
    ("S084", "cuptiprof run --metrics all --log-file all-metrics.log python myapp.py", "achieved_occupancy"),
    ("S086", "cuptiprof run --profile-from-start off --kernels elementwise --metrics all --log-file selective-profile.log python myapp.py", "Kernel: elementwise"),
    ("S086", "cuptiprof run --profile-from-start off --kernels elementwise --metrics ipc --log-file selective-profile.log python myapp.py", "ipc"),
    ("S087", 'cuptiprof run --profile-from-start off --kernels "::gemm:1" --metrics all --log-file selective-profile.log python myapp.py', "Kernel: volta_sgemm_64x64_nt"),
]  # fmt: skip


@pytest.mark.parametrize("row,line,told", LOGS, ids=[f"{row}-{i}" for i, (row, *_) in enumerate(LOGS)])
def test_reports_into_a_log_file(row: str, line: str, told: str, tmp_path: Path) -> None:
    done = run(line)
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"ran {['args'] if line.endswith(' args') else []}\n" and done.stderr == ""
    (log,) = tmp_path.glob("*.log")
    assert log.name in line and told in log.read_text()


def test_all_metrics_of_the_first_gemm_between_start_and_stop(tmp_path: Path) -> None:
    """Seed 003's own example: a hardware configuration of its own and metrics of several passes are in "all"."""
    done = run('cuptiprof run --profile-from-start off --kernels "::gemm:1" --metrics all -o run python myapp.py')
    assert done.returncode == 0, done.stderr
    saved = cuptiprof.open(tmp_path / "run")
    names = saved.metric_ranges["name"]
    assert sorted(names) == ["turing_h1688gemm_s884_tn", "volta_sgemm_64x64_nt"]  # each once, of those in the window
    counted = saved.metadata["counters"]
    assert counted["strategy"] == "replay" and len(saved.counters) > 150
    assert all(len(saved.counters[name]) == 2 for name in ("l2_tex_hit_rate", "ipc", "dram_read_throughput"))
    apart = [name for name, why in counted["dropped"].items() if "another hardware configuration" in why]
    assert apart and all(name.startswith(("pcie", "nvlink", "sysmem")) for name in apart), apart
    assert "were left out: needs another hardware configuration" in done.stderr


SAVED = [
    ("S044", "cuptiprof run -o profile.prof python train.py"),
    ("S047", "cuptiprof run --export-profile profile.prof python train.py"),
    ("S048", "cuptiprof run --analysis-metrics -o profile.prof python train.py"),
]


@pytest.mark.parametrize("row,line", SAVED, ids=[f"{row}-{i}" for i, (row, _) in enumerate(SAVED)])
def test_profiles_have_our_suffix(row: str, line: str, tmp_path: Path) -> None:
    theirs = run(line)
    assert theirs.returncode == 1 and theirs.stdout == "" and ".cuptiprof" in theirs.stderr, theirs.stderr
    done = run(line.replace(".prof ", ".cuptiprof "))
    assert done.returncode == 0 and done.stdout == "ran []\n", done.stderr
    (saved,) = tmp_path.glob("*.cuptiprof")
    result = cuptiprof.open(saved)
    assert len(result.kernels) == 15
    if "--analysis-metrics" in line:
        assert len(result.counters) > 40


@pytest.mark.parametrize("options", ["", "--analysis-metrics "])
def test_the_visual_profiler_s_file(options: str, tmp_path: Path) -> None:
    """S085: it is nvprof's database, and opens here as well."""
    done = run(f"cuptiprof run {options}-o analysis.nvvp python myapp.py")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "analysis.nvvp").read_bytes().startswith(b"SQLite format 3")
    assert len(cuptiprof.open(tmp_path / "analysis.nvvp").kernels) == 15
    assert ("analysis.nvvp: nvprof-sqlite has no place for counters of launches" in done.stderr) == bool(options)


def test_tensor_core_kernels_by_their_name(tmp_path: Path) -> None:
    """S098: nv-nsight-cu-cli took the name literally; today's ncu wants regex:."""
    done = run("cuptiprof run --kernel-id ::regex:s884:1 -o run python train.py")
    assert done.returncode == 0, done.stderr
    assert list(cuptiprof.open(tmp_path / "run").kernels["name"]) == ["turing_h1688gemm_s884_tn"]
    assert (
        "nearest names were: turing_h1688gemm_s884_tn"
        in run("cuptiprof run --kernel-id ::s884:1 python train.py").stderr
    )


@pytest.mark.parametrize(
    "row,line,told",
    [
        ("S080", "cuptiprof run -h", "--kernels"),
        ("S081", "cuptiprof metrics --query-metrics", "achieved_occupancy"),
        ("S081", "cuptiprof metrics --query-events", "active_cycles"),
        ("S081", "cuptiprof run -m ipc -e active_cycles --log-file %1 python myapp.py", "active_cycles"),
        ("S097", "cuptiprof run --log-file %1 python train.py", "volta_sgemm_64x64_nt"),
    ],
)
def test_what_is_printed(row: str, line: str, told: str) -> None:
    done = run(line)
    assert done.returncode == 0 and told in done.stdout, done.stderr


def test_the_system_beside(tmp_path: Path) -> None:
    """S045: power, clocks and temperature."""
    done = run("cuptiprof run --system-profiling on -o profile.cuptiprof python train.py")
    assert done.returncode == 0, done.stderr
    read = cuptiprof.open(tmp_path / "profile.cuptiprof").system_samples
    assert {"power", "temperature"} <= set(read["counter"])
