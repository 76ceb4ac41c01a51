"""``cuptiprof bench --processes`` and ``run_benchmarks(processes=)``: what starts, measures, dies and ends."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import bench_command
import pytest
from bench_command import bench, command

from cuptiprof.bench import benchmark, run_benchmarks
from cuptiprof.bench.results.store import read_processes, read_results
from cuptiprof.device.devices import open_device
from cuptiprof.errors import BenchError

folder = bench_command.folder  # the fixture

FILE = """
import os, signal, subprocess, time
from pathlib import Path
import cuptiprof
from cuptiprof.sim.sim_device import SimDevice

def note(what):
    with open("notes.txt", "a") as f: f.write(f"{what} {os.getpid()}\\n")

def count(what):
    return len({line for line in Path("notes.txt").read_text().splitlines() if line.startswith(what)})

@cuptiprof.benchmark(params={"n": [256, 512]})
def gemm(n):
    note("process")
    ns = n * (10 + count("process"))
    return lambda: SimDevice().launch("gemm", duration_ns=ns)

@cuptiprof.benchmark(params={"n": [1, 2, 3]})
def dies(n):
    note("process")
    if n == 2 and count("process") == 2: os.kill(os.getpid(), signal.SIGSEGV)
    return lambda: SimDevice().launch("k", duration_ns=1000)

@cuptiprof.benchmark(params={"n": list(range(50))}, max_seconds=0.2)
def many(n):
    try:
        note("process")
        child = subprocess.Popen(["sleep", "1000"])
        with open("children.txt", "a") as f: f.write(f"{child.pid}\\n")
        time.sleep(0.05)
        yield lambda: SimDevice().launch("k")
    finally:
        note("cleaned")

@cuptiprof.benchmark(params={"what": ["fine", "slow", "raises"]})
def odd(what):
    print("preparing")
    def call():
        if what == "slow": time.sleep(30)
        if what == "raises": raise ValueError("in the call")
        SimDevice().launch("k", duration_ns=5000)
    return call

@cuptiprof.benchmark(params={"n": [256, 512, 1024]})
def once(n):
    first = not os.environ.get("CUPTIPROF_BENCH_PROCESS")
    slower = float(os.environ.get("SLOWER", "1")) if n == 1024 or (first and n == 512) else 1
    note(f"point {n}")
    return lambda: SimDevice().launch("k", duration_ns=int(n * 8 * slower))
"""


def notes(folder: Path, what: str) -> list[str]:
    return [line for line in (folder / "notes.txt").read_text().splitlines() if line.startswith(what)]


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_each_process_measures_all_points_and_they_are_pooled(folder: Path) -> None:
    done = bench(folder, "bench_it.py::gemm", "--processes", 3, "--json", "o.jsonl", "--format", "json")
    assert done.returncode == 0, done.stderr
    pids = [line.split()[1] for line in notes(folder, "process")]
    assert len(pids) == 6 and len(set(pids)) == 3 and pids[0] == pids[1]  # one after the other
    lines = [line for line in done.stderr.splitlines() if line.startswith("process")]
    assert [line.split(" (")[0][:33] for line in lines][1:3] == [
        "process 1 of 3: [2/2] gemm n=512:",
        "process 2 of 3: [1/2] gemm n=256:",
    ]
    rows = json.loads(done.stdout)["rows"]
    assert rows[0]["median_ns"] == pytest.approx(256 * (11 * 12 * 13) ** (1 / 3), rel=1e-3)
    assert rows[0]["low_ns"] < 256 * 11 and rows[0]["high_ns"] > 256 * 13
    each = read_processes(folder / "o.jsonl")
    assert [[r.measurement.median for r in each[i].rows if r.measurement] for i in (1, 2, 3)] == [
        [256 * k, 512 * k] for k in (11, 12, 13)
    ]
    pooled = read_results(folder / "o.jsonl").rows[0].measurement
    assert pooled is not None and len(pooled.runs) == 3
    shown = bench(folder, "o.jsonl", "--baseline", "o.jsonl", "--fail-if-slower", "0%")
    assert shown.returncode == 0 and "3 processes, whose medians differ by" in shown.stdout


def test_files_called_as_modules(folder: Path) -> None:
    """Beside the benchmarks, where they are looked for only after those of Python."""
    (folder / "json.py").write_text("raise ImportError")
    (folder / "helper.py").write_text("NS = 4000")
    (folder / "signal.py").write_text(
        "import cuptiprof, helper\nfrom cuptiprof.sim.sim_device import SimDevice\n"
        "@cuptiprof.benchmark(max_seconds=0.2)\ndef f(): return lambda: SimDevice().launch('k', duration_ns=helper.NS)\n"
    )
    script = "import sys; sys.path.pop(0); from cuptiprof.cli import main; sys.exit(main())"
    args = [sys.executable, "-c", script, "bench", "signal.py", "--processes", "2", "--device", "sim"]
    done = subprocess.run(args, cwd=folder, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and "4.0000us" in done.stdout, done.stderr


def test_a_process_that_dies_ends_the_sweep_with_one_error(folder: Path) -> None:
    args = ("bench_it.py::dies", "--processes", 3, "--json", "o.jsonl")
    done = bench(folder, *args)
    assert done.returncode == 1, done.stderr
    assert "cuptiprof: process 2 of 3 has ended by SIGSEGV while it measured dies n=2" in done.stderr
    assert "ended after 4 of 9 points in 3 processes. To go on: cuptiprof bench bench_it.py::dies" in done.stderr
    rows = [line.split()[1] for line in done.stdout.splitlines() if line.startswith("dies  ")]
    assert "Traceback" not in done.stderr and rows == ["1", "2", "3"]
    again = bench(folder, *args, "--resume")
    assert again.returncode == 0, again.stderr
    assert "process 1 of 3: 3 of 3 points are measured already" in again.stderr
    assert "process 2 of 3: 1 of 3 points are measured already" in again.stderr
    assert [len(r) for r in read_processes(folder / "o.jsonl").values()] == [3, 3, 3]
    fewer = bench(folder, *args[:1], "--json", "o.jsonl", "--resume")
    assert fewer.returncode == 2 and "o.jsonl holds 3 processes" in fewer.stderr and "--processes 3" in fewer.stderr


def wait_for(path: Path, text: bytes, count: int) -> None:
    limit = time.monotonic() + 60
    while not (path.exists() and path.read_bytes().count(text) >= count):
        assert time.monotonic() < limit
        time.sleep(0.02)


@pytest.mark.parametrize("how", ["terminal", "parent alone", "killed"])
def test_interruptions_end_all_processes(folder: Path, how: str) -> None:
    """What the processes have started, too; a killed parent takes its process with it."""
    args = command("bench_it.py::many", "--processes", 2, "--json", "o.jsonl", "--device", "sim")
    with subprocess.Popen(args, cwd=folder, stdout=-1, stderr=-1, text=True, start_new_session=True) as child:
        wait_for(folder / "o.jsonl", b'"kind": "point"', 3)
        worker = int(notes(folder, "process")[0].split()[1])
        if how == "terminal":
            os.killpg(child.pid, signal.SIGINT)
        else:
            child.send_signal(signal.SIGINT if how == "parent alone" else signal.SIGKILL)
        if how != "killed":
            _, err = child.communicate(timeout=60)
            assert child.returncode == 130 and "interrupted after" in err and "To go on:" in err, err
            assert "Traceback" not in err
            begun, cleaned = (len(notes(folder, what)) for what in ("process", "cleaned"))
            assert cleaned - begun in (
                0,
                1,
            )  # the last one, too, which may have been interrupted before it had noted that it began
            assert not any(map(is_running, map(int, (folder / "children.txt").read_text().split())))
    limit = time.monotonic() + 20
    while is_running(worker):
        assert time.monotonic() < limit
        time.sleep(0.05)
    for pid in map(int, (folder / "children.txt").read_text().split()):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def test_limits_and_failures_are_those_of_the_process(folder: Path) -> None:
    done = bench(folder, "bench_it.py::odd", "--processes", 2, "--timeout", "1", "--format", "json")
    assert done.returncode == 1
    errors = {r["what"]: r["error"] for r in json.loads(done.stdout)["rows"]}
    assert errors["fine"] is None and errors["slow"] == "timeout: not over after 1 s"
    assert errors["raises"].startswith("ValueError: in the call (bench_it.py:")
    assert "2 of 3 points failed" in done.stderr and "preparing" in done.stderr


HANG = """
import ctypes
import cuptiprof
import cuptiprof.bench.sweep.failures, cuptiprof.bench.sweep.other_process
from cuptiprof.sim.sim_device import SimDevice

cuptiprof.bench.sweep.failures.GRACE_SECONDS = cuptiprof.bench.sweep.other_process.GRACE_SECONDS = 0.5
cuptiprof.bench.sweep.other_process.SPARE_SECONDS = 2

@cuptiprof.benchmark(params={"n": [1, 2, 3]})
def f(n):
    libc = (ctypes.PyDLL if HOLDS_THE_GIL else ctypes.CDLL)(None)
    mutex = ctypes.create_string_buffer(64)
    def call():
        SimDevice().launch("k")
        if n == 2:
            libc.pthread_mutex_lock(mutex)
            libc.pthread_mutex_lock(mutex)  # for ever, whatever signals come
    return call
"""


@pytest.mark.parametrize("holds_the_gil", [False, True])
def test_a_point_that_never_comes_back(folder: Path, holds_the_gil: bool) -> None:
    """By the limit of its own process, or where that cannot run Python any more by that of this one."""
    (folder / "hang.py").write_text(HANG.replace("HOLDS_THE_GIL", str(holds_the_gil)))
    began = time.monotonic()
    done = bench(folder, "hang.py", "--processes", 2, "--json", "o.jsonl", "--timeout", "1")
    assert done.returncode == 1 and time.monotonic() - began < 40, done.stderr
    message = "has not answered for 4 s while it measured f n=2" if holds_the_gil else "f n=2 does not come back"
    assert message in done.stderr and "To go on:" in done.stderr, done.stderr
    (stored,) = read_processes(folder / "o.jsonl").values()
    assert len(stored) == (1 if holds_the_gil else 2)


@pytest.mark.parametrize(
    "arguments,message",
    [
        (["bench_it.py::gemm", "--processes", "0"], "'0' is no number of processes"),
        (["bench_it.py::gemm", "--processes", "two"], "is no number"),
        (["bench_it.py::gemm", "--processes", "2", "--device", "sim:H1000"], "unknown simulated chip"),
        (["bench_it.py::gemm", "--processes", "2", "--metrics", "achieved_ocupancy"], "mean achieved_occupancy"),
        (["o.jsonl", "--processes", "2"], "--processes does not fit"),
    ],
)
def test_what_cannot_begin(folder: Path, arguments: list[str], message: str) -> None:
    done = bench(folder, *arguments)
    assert done.returncode == 2 and done.stderr.count(message) == 1 and done.stdout == "", done.stderr
    assert "Traceback" not in done.stderr


def test_slower_points_are_measured_again_before_they_fail(folder: Path) -> None:
    """512 was slow by chance, 1024 is slow: 1 % of the points' times is not much of an offset between processes."""
    assert bench(folder, "bench_it.py::once", "--json", "old.jsonl").returncode == 0
    (folder / "notes.txt").unlink()
    args = ("bench_it.py::once", "--baseline", "old.jsonl", "--fail-if-slower", "5%", "--json", "new.jsonl")
    done = bench(folder, *args, SLOWER="1.2")
    assert done.returncode == 1, done.stderr
    assert "2 of the points are slower than the baseline: measured again in 2 new processes" in done.stderr
    assert "not slower when measured again: once n=512: " in done.stderr
    assert "slower by 5% or more: once n=1024: " in done.stderr
    # In turn: there and back. What was fast enough is left alone.
    points = [line.split()[1:] for line in notes(folder, "point")]
    assert [n for n, _ in points] == ["256", "512", "1024", "512", "1024", "1024", "512"]
    assert len({pid for _, pid in points}) == 3
    # The file has what was measured first: it is no choice of what came out well.
    stored = {r.params["n"]: r.measurement.median for r in read_results(folder / "new.jsonl").rows if r.measurement}
    assert stored[512] == int(512 * 8 * 1.2)
    passes = bench(folder, *args[:-2], "--filter", "n<=512", SLOWER="1.2")
    assert passes.returncode == 0 and "not slower when measured again: once n=512" in passes.stderr


def test_processes_are_measured_again_in_as_many(folder: Path) -> None:
    assert bench(folder, "bench_it.py::once", "--json", "old.jsonl", "--processes", 2).returncode == 0
    args = ("bench_it.py::once", "--baseline", "old.jsonl", "--fail-if-slower", "5%", "--processes", 2)
    done = bench(folder, *args, SLOWER="1.2")
    assert done.returncode == 1 and done.stderr.count("slower by 5% or more: once n=1024") == 1, done.stderr
    assert "again, process 2 of 2: [1/1] once n=1024" in done.stderr


SCRIPT = """
import cuptiprof
from cuptiprof.bench import run_benchmarks
from cuptiprof.sim.sim_device import SimDevice

@cuptiprof.benchmark(params={"n": [8, 16]})
def f(n): return lambda: SimDevice().launch("k", duration_ns=n * 1000)

GUARD
    found = run_benchmarks(f, device="sim", processes=2, max_seconds=0.5)
    print([(r.params["n"], len(r.measurement.runs), round(r.measurement.median)) for r in found.rows])
"""


def test_from_a_script(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT.replace("GUARD", "if __name__ == '__main__':"))
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and done.stdout == "[(8, 2, 8000), (16, 2, 16000)]\n", done.stderr
    script.write_text(SCRIPT.replace("GUARD", "if True:"))
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 1 and "put the call of run_benchmarks() under `if __name__" in done.stderr


def test_what_other_processes_cannot_do() -> None:
    @benchmark
    def inside() -> Any:
        return lambda: None

    with pytest.raises(BenchError, match="has no benchmark"):
        run_benchmarks(inside, device="host", processes=2)
    with pytest.raises(BenchError, match="a device that is open here"):
        run_benchmarks(inside, device=open_device("sim"), processes=2)
    with pytest.raises(BenchError, match="processes=0"):
        run_benchmarks(inside, device="host", processes=0)
    space: dict[str, Any] = {}
    exec("import cuptiprof\n@cuptiprof.benchmark\ndef nowhere(): return lambda: None", space)
    with pytest.raises(BenchError, match="is in no file"):
        run_benchmarks(space["nowhere"], device="host", processes=2)
