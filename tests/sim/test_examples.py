"""The benchmarks and integrations of examples/ run as their first lines say, on the simulated device, and print what they are there for."""

from __future__ import annotations

import csv
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import cuptiprof

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def run(folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env={**os.environ, "CUPTIPROF_DEVICE": "sim", "COLUMNS": "250", "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=280,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def bench(folder: Path, name: str, *arguments: str) -> str:
    return run(folder, "-m", "cuptiprof", "bench", str(EXAMPLES / name), "--time", "0.3", *arguments)


def test_one_function(tmp_path: Path) -> None:
    said = run(tmp_path, str(EXAMPLES / "bench_function.py"))
    assert re.search(r"GPU time +[\d.]+us  \[.*\] at 95 %", said) and "softmax_warp_forward" in said


def test_sizes_and_dtypes(tmp_path: Path) -> None:
    said = bench(tmp_path, "bench_sizes.py", "--format", "csv", "--plot", "p.svg", "--x", "n")
    rows = [line[:3] for line in csv.reader(said.splitlines()) if line[:1] == ["softmax"]]
    assert len(rows) == 9 and ["softmax", "512", "torch.bfloat16"] in rows
    assert "softmax dtype=torch.float32" in (tmp_path / "p.svg").read_text()


def test_eager_and_compiled(tmp_path: Path) -> None:
    said = run(tmp_path, str(EXAMPLES / "bench_compiled.py"))
    assert re.search(r"^eager .* base$", said, re.MULTILINE) and re.search(r"^compiled .* x1\.000 ", said, re.MULTILINE)


def test_eager_and_compiled_over_sizes(tmp_path: Path) -> None:
    said = run(tmp_path, str(EXAMPLES / "bench_compiled_over_sizes.py"))
    assert "compiled against eager: speed-up x1.000 (geometric mean of 3 points: " in said


def test_bandwidth_and_roofline(tmp_path: Path) -> None:
    pictures = ("--plot", "b.svg", "--x", "n", "--y", "bytes", "--roofline", "r.svg")
    said = json.loads(bench(tmp_path, "bench_bandwidth.py", "--filter", "n<=262144", "--format", "json", *pictures))
    for row in said["rows"]:
        assert (
            row["byte_rate"] == pytest.approx(12 * row["n"] / row["median_ns"] * 1e9) and 0 < row["roof_percent"] < 100
        )
    assert (
        "peak 3.35 TB/s" in (tmp_path / "b.svg").read_text()
        and "compute 67 TFLOP/s" in (tmp_path / "r.svg").read_text()
    )


def test_gemm(tmp_path: Path) -> None:
    said = run(tmp_path, str(EXAMPLES / "bench_gemm.py"))
    assert re.search(r"roofline +[\d.]+TFLOP/s = [\d.]+ % of peak", said)
    assert "(operations given, bfloat16; peak at 1980 MHz" in said


def test_a_gate_in_pytest(tmp_path: Path) -> None:
    pytest_run = (
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "--rootdir",
        str(tmp_path),
        str(EXAMPLES / "test_speed.py"),
    )
    assert "1 passed" in run(tmp_path, *pytest_run, "--cuptiprof-json", "main.jsonl")
    said = run(tmp_path, *pytest_run, "--cuptiprof-baseline", "main.jsonl", "--cuptiprof-fail-if-slower", "5%")
    assert "1 passed" in said and "1 points compared" in said


def test_exports(tmp_path: Path) -> None:
    import pandas as pd

    run(tmp_path, str(EXAMPLES / "bench_exports.py"), str(tmp_path))
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        f"exp.{e}" for e in ("csv", "html", "json", "md", "parquet", "png")
    ]
    frame, rows = pd.read_parquet(tmp_path / "exp.parquet"), json.loads((tmp_path / "exp.json").read_text())["rows"]
    assert frame["median_ns"].tolist() == [r["median_ns"] for r in rows] and list(frame.columns) == list(rows[0])
    assert (tmp_path / "exp.md").read_text().count("| exp |") == 3 and (tmp_path / "exp.png").read_bytes()[
        1:4
    ] == b"PNG"


@pytest.mark.parametrize(
    "name,arguments",
    [("bench_sort.py", ["--device", "host", "--filter", "n=1000"]),
     ("bench_attention.py::forward_cold", ["--filter", "tokens=128,dtype=torch.float16"])],
)  # fmt: skip
def test_what_needs_a_setup_or_an_end(tmp_path: Path, name: str, arguments: list[str]) -> None:
    assert len(re.findall(r"^(sort|forward_cold) .*us ", bench(tmp_path, name, *arguments), re.MULTILINE)) == 1


def test_lightning(tmp_path: Path) -> None:
    run(tmp_path, str(EXAMPLES / "train_lightning.py"))
    kept = cuptiprof.open(tmp_path / "fit.cuptiprof")
    forward = "run_training_epoch/run_training_batch/[LightningModule]Classifier.optimizer_step/[Strategy]SingleDeviceStrategy.training_step/forward"
    assert set(kept.kernels["step"]) == {3, 4, 5} and forward in kept.kernels["region"].tolist()


def test_hugging_face(tmp_path: Path) -> None:
    said = run(tmp_path, str(EXAMPLES / "train_hugging_face.py"))
    assert re.search(r" micro_batch$", said, re.MULTILINE) and "saved: " in said
    said = run(tmp_path, "-m", "cuptiprof", "report", "--view", "regions", "runs")
    assert re.search(r" evaluate$", said, re.MULTILINE)


def test_a_notebook(tmp_path: Path) -> None:
    said = run(tmp_path, "-m", "IPython", "--colors=NoColor", str(EXAMPLES / "in_a_notebook.ipy"))
    assert re.search(r" bwd$", said, re.MULTILINE) and "achieved_occupancy" in said and "ns in kernels" in said


def test_each_example_says_how_to_run_it() -> None:
    for path in [*EXAMPLES.glob("*.py"), *EXAMPLES.glob("*.ipy")]:
        assert f"examples/{path.name}" in path.read_text().partition('"""\n\n')[0], path.name


def test_memory_by_module(tmp_path: Path) -> None:
    said = run(tmp_path, str(EXAMPLES / "memory_by_module.py"), "--device", "sim")
    assert re.search(r"^Sequential\.\d held \d+% of the [\d.]+ MiB at the peak$", said, re.MULTILINE), said
    assert all(f"by {way}" in said for way in ("region", "module", "operator")) and " backward\n" in said
    assert (tmp_path / "memory.pickle").read_bytes()[:1] == b"\x80" and "<polygon" in (
        tmp_path / "memory.memory.html"
    ).read_text()


def test_collectives_of_two_ranks(tmp_path: Path) -> None:
    said = run(tmp_path, str(EXAMPLES / "collectives_gloo.py"), "--device", "sim")
    assert "(default_pg, gloo), ranks [0,1]" in said
    assert "gradients: all_reduce of 131,072 bytes\ngradients: all_reduce of 512 bytes\n" in said
    assert said.endswith("metrics: all_gather of 4 bytes\n")


def test_torch_profilers_loop_with_one_import_changed(tmp_path: Path) -> None:
    said = run(tmp_path, str(EXAMPLES / "torch_profiler_one_import.py"))
    assert re.search(
        r"^ +Name +Self CPU % .* Self CUDA .* # of Calls +Input Shapes +Total \w*FLOPs", said, re.MULTILINE
    )
    assert re.search(r"Device self +Device total +Host self .* Operator", said)
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert sum(e["name"] == "forward" and e["cat"] == "user_annotation" for e in events if "cat" in e) == 3


def test_time_by_module(tmp_path: Path) -> None:
    said = run(tmp_path, str(EXAMPLES / "time_by_module.py"), "--device", "sim")
    modules, counted = said.split("\nMetrics\n", 1)
    assert all(re.search(rf"^.*\b{name}\b", modules, re.MULTILINE) for name in ("Net", "attn", "mlp", "head"))
    assert counted.count("sgemm") == 6 and "gelu_backward" in counted
