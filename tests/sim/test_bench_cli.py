"""``cuptiprof bench`` as a user types it, on the simulated device."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import bench_command
import pytest
from bench_command import bench, command

import cuptiprof
from cuptiprof.bench import run_benchmarks
from cuptiprof.sim.sim_device import SimDevice

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"

folder = bench_command.folder  # the fixture

FILE = """
import os, time
import cuptiprof
from cuptiprof.sim.sim_device import SimDevice

SLOWER = float(os.environ.get("SLOWER", "1"))

@cuptiprof.benchmark(params={"n": [256, 512, 1024], "dtype": ["f16", "f32"]}, flops=lambda n: 2.0 * n**3)
def gemm(n, dtype):
    sim = SimDevice()
    ns = int(n * SLOWER * {"f16": 4, "f32": 8}[dtype])
    return lambda: sim.launch(f"gemm_{dtype}", duration_ns=ns)

@cuptiprof.benchmark(params={"what": ["fine", "raises", "memory", "nothing", "slow"]})
def odd(what):
    sim = SimDevice()
    if what == "memory":
        raise MemoryError("no room")
    def call():
        if what == "raises": raise ValueError("in the call")
        if what == "slow": time.sleep(30)
        if what != "nothing": sim.launch("k", duration_ns=5000)
    yield call

@cuptiprof.benchmark(params={"n": list(range(200))}, max_seconds=0.2)
def many(n):
    time.sleep(0.05)
    return lambda: SimDevice().launch("k")
"""


def points(path: Path) -> dict[tuple[Any, ...], dict[str, Any]]:
    """Parameters -> the last line of that point."""
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    return {tuple(line["params"].values()): line for line in lines if line["kind"] == "point"}


def runs(path: Path) -> list[dict[str, Any]]:
    return [line for line in map(json.loads, path.read_text().splitlines()) if line["kind"] == "run"]


def test_a_sweep_gives_a_table_and_lines_of_progress(folder: Path) -> None:
    done = bench(folder, "bench_it.py::gemm", "--json", "o.jsonl")
    assert done.returncode == 0, done.stderr
    rows = [line.split() for line in done.stdout.splitlines() if line.startswith("gemm")]
    assert [row[1:4] for row in rows] == [
        ["256", "f16", "1.0240us"], ["256", "f32", "2.0480us"], ["512", "f16", "2.0480us"], ["512", "f32", "4.0960us"],
        ["1024", "f16", "4.0960us"], ["1024", "f32", "8.1920us"],
    ]  # fmt: skip
    assert "SIMULATED device (chip H100)" in done.stdout
    progress = done.stderr.splitlines()
    assert progress[0].startswith("[1/6] gemm n=256 dtype=f16: 1.0240us +/- 0.05%  (") and "left)" in progress[0]
    assert progress[-1] == "[6/6] gemm n=1024 dtype=f32: 8.1920us +/- 0.01%"
    stored = points(folder / "o.jsonl")
    assert stored[512, "f32"]["measurement"]["interval"]["median"] == 4096.0
    (run,) = runs(folder / "o.jsonl")
    assert run["environment"]["chip"] == "H100" and run["environment"]["simulated"] is True


def test_failing_points_are_rows(folder: Path) -> None:
    done = bench(folder, "bench_it.py::odd", "--json", "o.jsonl", "--format", "json", "--timeout", "1")
    assert done.returncode == 1
    errors = {r["what"]: r["error"] for r in json.loads(done.stdout)["rows"]}
    assert errors["fine"] is None
    assert errors["raises"].startswith("ValueError: in the call (bench_it.py:")
    assert errors["memory"].startswith("out of memory: MemoryError: no room (bench_it.py:")
    assert "gives the GPU nothing to do" in errors["nothing"]
    assert errors["slow"] == "timeout: not over after 1 s"
    assert "4 of 5 points failed" in done.stderr
    assert points(folder / "o.jsonl")["memory",]["failure"]["kind"] == "out of memory"


@pytest.mark.parametrize("form,start", [("markdown", "### Benchmarks"), ("csv", "# Benchmarks"), ("json", "{")])
def test_formats(folder: Path, form: str, start: str) -> None:
    done = bench(folder, "bench_it.py::gemm", "--filter", "n=256,dtype=f16", "--format", form, "-u", "ns")
    assert done.returncode == 0 and done.stdout.startswith(start) and "1024" in done.stdout


def test_listing_needs_no_device(folder: Path) -> None:
    done = bench(
        folder, "bench_it.py", "--list", "--filter", "n>=512,dtype=f16", sim=False, CUPTIPROF_DEVICE="nonsense"
    )
    assert (done.returncode, done.stdout) == (0, "gemm n=512 dtype=f16\ngemm n=1024 dtype=f16\n")


def test_options_reach_the_measuring(folder: Path) -> None:
    done = bench(folder, "bench_it.py::gemm", "--filter", "n=256,dtype=f16", "--strategy", "event", "--l2", "cold",
                 "--metrics", "inst_executed", "--time", "0.5", "--json", "o.jsonl")  # fmt: skip
    assert done.returncode == 0, done.stderr
    line = points(folder / "o.jsonl")[256, "f16"]
    assert line["arguments"] == {"l2": "cold", "max_seconds": 0.5, "metrics": ["inst_executed"], "strategy": "event"}
    m = line["measurement"]
    assert (m["strategy"], m["l2"], m["counters"][0]["name"]) == ("event", "cold", "inst_executed")
    assert "inst_executed" in done.stdout


def test_what_benchmarks_print_is_no_part_of_the_table(folder: Path) -> None:
    text = "import cuptiprof\nprint('loading')\n" + FILE.replace(
        "    sim = SimDevice()\n", "    sim = SimDevice()\n    print('preparing')\n"
    )
    (folder / "bench_it.py").write_text(text)
    done = bench(folder, "bench_it.py::gemm", "--format", "json", "--filter", "n=256")
    assert len(json.loads(done.stdout)["rows"]) == 2
    assert done.stderr.count("loading") == 1 and done.stderr.count("preparing") == 2


def test_a_full_disk_ends_the_sweep_and_shows_what_there_is(folder: Path) -> None:
    limit = "import resource, runpy, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (9000, 9000)); sys.argv[0] = 'cuptiprof'; "
    limit += "import signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN); runpy.run_module('cuptiprof', run_name='__main__')"
    args = [sys.executable, "-c", limit, "bench", "bench_it.py::gemm", "--json", "o.jsonl", "--device", "sim"]
    done = subprocess.run(args, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 1 and "cannot write o.jsonl: File too large" in done.stderr, done.stderr
    rows = [line for line in done.stdout.splitlines() if line.startswith("gemm")]
    assert 1 <= len(rows) < 6 and f"ended after {len(rows)} of 6 points" in done.stderr
    again = bench(folder, "bench_it.py::gemm", "--json", "o.jsonl", "--resume")
    assert again.returncode == 0 and len(points(folder / "o.jsonl")) == 6


def test_functions_without_a_gpu(folder: Path) -> None:
    (folder / "host.py").write_text(
        "import cuptiprof\n@cuptiprof.benchmark(strategy='cpu', max_seconds=0.3)\ndef f(): return lambda: sum(range(1000))"
    )
    done = bench(folder, "host.py", "--device", "host", "--json", "o.jsonl", sim=False)
    assert done.returncode == 0, done.stderr
    assert points(folder / "o.jsonl")[()]["measurement"]["interval"]["median"] > 100


def test_resuming_measures_only_what_is_left(folder: Path) -> None:
    args = ("bench_it.py::gemm", "--json", "o.jsonl")
    assert bench(folder, *args, "--filter", "dtype=f16").returncode == 0
    before = (folder / "o.jsonl").read_bytes()
    done = bench(folder, *args)
    assert done.returncode == 2 and "o.jsonl exists" in done.stderr and "--resume" in done.stderr
    done = bench(folder, *args, "--resume")
    assert done.returncode == 0 and "3 of 6 points are measured already" in done.stderr
    assert "[3/3]" in done.stderr and "dtype=f16" not in done.stderr
    assert (folder / "o.jsonl").read_bytes().startswith(before)
    table = [line.split()[1:3] for line in done.stdout.splitlines() if line.startswith("gemm")]
    assert table == [[n, t] for n in ("256", "512", "1024") for t in ("f16", "f32")]  # in the order of the sweep
    (folder / "bench_it.py").write_text(FILE + "\n# edited\n")
    done = bench(folder, *args, "--resume")
    assert "6 measured again: the benchmark's file has changed since" in done.stderr and "[6/6]" in done.stderr
    done = bench(folder, *args, "--resume", "--l2", "cold")
    assert "6 measured again: other arguments (l2)" in done.stderr
    assert len(runs(folder / "o.jsonl")) == 4


def start(folder: Path, *arguments: object) -> subprocess.Popen[str]:
    pipe = subprocess.PIPE
    return subprocess.Popen(command(*arguments, "--device", "sim"), cwd=folder, stdout=pipe, stderr=pipe, text=True)


def wait_for_points(path: Path, count: int) -> None:
    limit = time.monotonic() + 60
    while not (path.exists() and path.read_bytes().count(b'"kind": "point"') >= count):
        assert time.monotonic() < limit
        time.sleep(0.02)


def test_an_interruption_leaves_a_good_file_and_says_how_to_go_on(folder: Path) -> None:
    child = start(folder, "bench_it.py::many", "--json", "o.jsonl")
    wait_for_points(folder / "o.jsonl", 3)
    child.send_signal(signal.SIGINT)
    out, err = child.communicate(timeout=60)
    assert child.returncode == 130
    stored = points(folder / "o.jsonl")
    assert 3 <= len(stored) < 200
    assert f"interrupted after {len(stored)} of 200 points" in err
    assert "To go on: cuptiprof bench bench_it.py::many --json o.jsonl --device sim --resume" in err
    assert out.count("many ") == len(stored)  # the table has what there is
    done = bench(folder, "bench_it.py::many", "--json", "o.jsonl", "--resume", "--filter", "n<5")
    assert done.returncode == 0 and "of 5 points are measured already" in done.stderr


def test_a_killed_sweep_leaves_whole_lines(folder: Path) -> None:
    child = start(folder, "bench_it.py::many", "--json", "o.jsonl")
    wait_for_points(folder / "o.jsonl", 3)
    child.kill()
    child.communicate()
    count = len(points(folder / "o.jsonl"))
    with (folder / "o.jsonl").open("a") as f:
        f.write('{"kind": "point", "bench')  # as if it had been killed in the middle of a line
    done = bench(folder, "o.jsonl", sim=False)
    assert done.returncode == 0 and "its last line is cut off" in done.stdout
    done = bench(folder, "bench_it.py::many", "--json", "o.jsonl", "--resume", "--filter", "n<4")
    assert done.returncode == 0 and len(points(folder / "o.jsonl")) == max(count, 4)


HANG = """
import ctypes
import cuptiprof
import cuptiprof.bench.sweep.failures
from cuptiprof.sim.sim_device import SimDevice

cuptiprof.bench.sweep.failures.GRACE_SECONDS = 0.5

@cuptiprof.benchmark(params={"n": [1, 2, 3]})
def f(n):
    libc, mutex = ctypes.CDLL(None), ctypes.create_string_buffer(64)
    def call():
        SimDevice().launch("k")
        if n == 2:
            libc.pthread_mutex_lock(mutex)
            libc.pthread_mutex_lock(mutex)  # for ever, whatever signals come: as a kernel that does not end
    return call
"""


def test_a_point_that_never_comes_back_ends_the_sweep_with_its_row(folder: Path) -> None:
    (folder / "hang.py").write_text(HANG)
    args = ("hang.py", "--json", "o.jsonl", "--timeout", "1")
    done = bench(folder, *args)
    assert done.returncode == 1 and "it does not come back, so the sweep ends here. To go on:" in done.stderr
    stored = points(folder / "o.jsonl")
    assert list(stored) == [(1,), (2,)] and stored[2,]["failure"]["kind"] == "timeout"
    done = bench(folder, *args, "--resume")  # goes past it
    assert list(points(folder / "o.jsonl")) == [(1,), (2,), (3,)]
    assert done.returncode == 1 and "1 of 3 points failed" in done.stderr


@pytest.fixture
def compared(folder: Path) -> Path:
    """Old and new results, the new ones 10 % slower."""
    assert bench(folder, "bench_it.py::gemm", "--json", "old.jsonl").returncode == 0
    assert bench(folder, "bench_it.py::gemm", "--json", "new.jsonl", "--filter", "n>256", SLOWER="1.1").returncode == 0
    return folder


def test_comparing_stored_results(compared: Path) -> None:
    done = bench(compared, "new.jsonl", "--baseline", "old.jsonl", sim=False)
    assert done.returncode == 0
    assert "4 points compared: 4 SLOWER" in done.stdout
    assert "only in the baseline: gemm n=256 dtype=f16" in done.stdout
    rows = json.loads(bench(compared, "new.jsonl", "--baseline", "old.jsonl", "--format", "json", sim=False).stdout)[
        "rows"
    ]
    assert next((r["base_ns"], r["median_ns"], r["verdict"]) for r in rows) == (2048.0, 2252.0, "SLOWER")
    back = bench(compared, "old.jsonl", "--baseline", "new.jsonl", sim=False).stdout
    assert "4 FASTER" in back
    same = bench(compared, "old.jsonl", "--baseline", "old.jsonl", "--fail-if-slower", "0%", sim=False)
    assert same.returncode == 0 and "6 SAME" in same.stdout


@pytest.mark.parametrize("limit,status", [("5%", 1), ("9.9%", 1), ("10%", 0), ("20%", 0)])
def test_failing_if_slower(compared: Path, limit: str, status: int) -> None:
    args = ("new.jsonl", "--filter", "n=512", "--baseline", "old.jsonl", "--fail-if-slower", limit)
    done = bench(compared, *args, sim=False)  # 2252 / 2048 = 1.0996
    assert done.returncode == status
    assert (f"slower by {limit} or more: gemm n=512" in done.stderr) == bool(status)


def test_a_baseline_for_a_sweep(compared: Path) -> None:
    args = ("bench_it.py::gemm", "--baseline", "old.jsonl", "--fail-if-slower", "5%")
    assert bench(compared, *args).returncode == 0
    assert bench(compared, *args, SLOWER="1.06").returncode == 1


def test_another_chip_gets_no_verdict_and_passes_no_gate(compared: Path) -> None:
    assert (
        bench(compared, "bench_it.py::gemm", "--device", "sim:A100", "--json", "a100.jsonl", sim=False).returncode == 0
    )
    args = ("a100.jsonl", "--baseline", "old.jsonl")
    done = bench(compared, *args, sim=False)
    assert done.returncode == 0 and "NOTE: another chip: H100 in the baseline, A100 now" in done.stdout
    assert "6 NO VERDICT" in done.stdout
    gate = bench(compared, *args, "--fail-if-slower", "5%", sim=False)
    assert gate.returncode == 1 and "no point could be judged" in gate.stderr
    assert "6 SAME" in bench(compared, *args, "--across-chips", sim=False).stdout


def test_plot(compared: Path) -> None:
    assert bench(compared, "old.jsonl", "--plot", "p.svg", "--x", "n", sim=False).returncode == 0
    assert "gemm dtype=f16" in (compared / "p.svg").read_text()
    done = bench(
        compared, "old.jsonl", "--histograms", "h.svg", "--plot", "f.svg", "--x", "n", "--y", "flops", sim=False
    )
    assert done.returncode == 0 and "gemm n=256 dtype=f16" in (compared / "h.svg").read_text()
    assert "FLOP/s)" in (compared / "f.svg").read_text()
    done = bench(compared, "old.jsonl", "--html", "p.html", "--baseline", "old.jsonl", sim=False)
    assert done.returncode == 0 and "Against the baseline" in (compared / "p.html").read_text()
    done = bench(compared, "old.jsonl", "--roofline", "r.svg", "--histograms", "h2.svg", sim=False)
    assert done.returncode == 1 and "no point has both operations and bytes" in done.stderr
    assert (compared / "h2.svg").exists() and not (compared / "r.svg").exists()
    done = bench(compared, "bench_it.py::gemm", "--plot", "q.svg", "--x", "m")
    assert done.returncode == 2 and "no parameter 'm'" in done.stderr and "[1/" not in done.stderr


def test_history(folder: Path) -> None:
    (folder / "history").mkdir()
    for _ in range(2):
        done = bench(folder, "bench_it.py::gemm", "--filter", "n=256", "--json", "history/")
        assert done.returncode == 0 and "results go to history/" in done.stderr
    assert len(list((folder / "history").iterdir())) == 2
    done = bench(folder, "history", "--filter", "dtype=f16", "--plot", "t.svg", sim=False)
    assert done.returncode == 0 and "too few runs (2) to tell a step from chance" in done.stdout
    assert "1.0240us" in done.stdout and "gemm n=256 dtype=f16" in (folder / "t.svg").read_text()
    rows = json.loads(bench(folder, "history/", "--format", "json", sim=False).stdout)["rows"]
    assert [(r["dtype"], r["runs"], r["median_ns"]) for r in rows] == [("f16", 2, 1024.0), ("f32", 2, 2048.0)]
    assert bench(folder, "history", "--list", sim=False).stdout.splitlines()[0] == "gemm n=256 dtype=f16: 2 runs"
    assert "did you mean dtype?" in bench(folder, "history", "--filter", "dtyp=f16", sim=False).stderr
    (folder / "empty").mkdir()
    assert "empty has no results" in bench(folder, "empty", sim=False).stderr
    for wrong in (["--x", "n"], ["--baseline", "b"], ["--json", "o"], ["history"], ["--histograms", "h.svg"]):
        done = bench(folder, "history", *wrong, sim=False)
        assert (
            done.returncode == 2 and "is a folder of results" in done.stderr
        ) or "is read, not measured" in done.stderr
    done = bench(folder, "bench_it.py", "--json", "history", "--resume")
    assert done.returncode == 2 and "which of those in history?" in done.stderr


def test_a_run_of_a_history_that_is_interrupted_says_its_file(folder: Path) -> None:
    (folder / "history").mkdir()
    process = subprocess.Popen(
        [*command("bench_it.py::many", "--json", "history"), "--device", "sim"],
        cwd=folder,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    while "[2/200]" not in process.stderr.readline():
        pass
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    (stored,) = (folder / "history").iterdir()
    assert process.returncode == 130
    assert f"--json history --device sim --json history/{stored.name} --resume" in said


@pytest.mark.parametrize(
    "arguments,message",
    [
        (["bench_it.py::gmem"], "did you mean gemm?"),
        (["bench_it.py::gemm", "--filter", "dytpe=f16"], "did you mean dtype?"),
        (["bench_it.py::gemm", "--filter", "dtype=f61"], "did you mean f16?"),
        (["benchit.py"], "did you mean bench_it.py?"),
        (["bench_it.py", "--fail-if-slower", "5%"], "--fail-if-slower needs --baseline"),
        (["bench_it.py", "--baseline", "none", "--fail-if-slower", "0.05"], "write 5%"),
        (["bench_it.py", "--baseline", "none"], "cannot read none"),
        (["bench_it.py", "--baseline", "bench_it.py"], "not JSON"),
        (["bench_it.py", "--threshold", "2%"], "--threshold needs --baseline"),
        (["bench_it.py", "-f"], "--force-overwrite needs --json"),
        (["bench_it.py", "--resume"], "--resume needs --json"),
        (["bench_it.py", "--resume", "-f", "--json", "x"], "exclude each other"),
        (["bench_it.py", "--plot", "x.svg"], "--plot and --x go together"),
        (["bench_it.py::gemm", "--plot", "x.pdf", "--x", "n"], "no such kind of picture"),
        (["bench_it.py::gemm", "--roofline", "x.pdf"], "no such kind of picture"),
        (["bench_it.py", "--y", "bytes"], "--y needs --plot"),
        (["bench_it.py", "--time", "-1"], "no positive number"),
        (["bench_it.py", "--strategy", "kernal"], "invalid choice"),
        (["bench_it.py", "--fitler", "n=1"], "did you mean --filter?"),
        (["bench_it.py", "bench_it.py"], "two benchmarks have the same name"),
        (["bench_it.py", "--json", "none/x"], "cannot write none/x"),
        (["results.txt"], "cannot read results.txt"),
        (["x.jsonl", "--metrics", "ipc"], "--metrics does not fit"),
    ],
)
def test_what_cannot_begin_says_why(folder: Path, arguments: list[str], message: str) -> None:
    stored = arguments[0].endswith((".txt", ".jsonl"))
    done = bench(folder, *arguments, sim=not stored)
    assert done.returncode == 2 and message in done.stderr and done.stdout == "", done.stderr
    assert "Traceback" not in done.stderr


def test_a_device_that_is_not_there_is_no_slow_point(folder: Path) -> None:
    """Exit status 1 is for points; a gate in CI shall not take a lost GPU for a slow-down."""
    done = bench(folder, "bench_it.py", "--device", "sim:H1000", sim=False)
    assert done.returncode == 2 and "unknown simulated chip" in done.stderr and done.stdout == ""


def test_a_metric_that_is_none_is_told_once(folder: Path) -> None:
    """And before anything is measured."""
    done = bench(folder, "bench_it.py::gemm", "--metrics", "achieved_ocupancy", "--json", "out.jsonl")
    assert done.returncode == 2 and done.stdout == "" and done.stderr.count("achieved_ocupancy") == 1, done.stderr
    assert "Did you mean achieved_occupancy" in done.stderr and not (folder / "out.jsonl").exists()
    done = bench(folder, "bench_it.py::gemm", "--metrics", "ipc", "--device", "host", sim=False)
    assert done.returncode == 2 and done.stderr.count("has no counters") == 1


def test_the_host_alone_needs_no_strategy(folder: Path) -> None:
    (folder / "bench_host.py").write_text(
        "import cuptiprof\n@cuptiprof.benchmark(params={'n': [10, 20]}, max_seconds=0.3)\ndef f(n): return lambda: sum(range(n))\n"
    )
    done = bench(folder, "bench_host.py", "--device", "host", "--format", "json", sim=False)
    assert done.returncode == 0, done.stderr
    assert {row["strategy"] for row in json.loads(done.stdout)["rows"]} == {"cpu"}


def test_a_bar_on_a_terminal(folder: Path) -> None:
    ours, theirs = pty.openpty()
    args = command("bench_it.py::gemm", "--filter", "n=256", "--device", "sim")
    with subprocess.Popen(args, cwd=folder, stdout=theirs, stderr=theirs, env={**os.environ, "TERM": "xterm"}) as child:
        os.close(theirs)
        seen = b""
        while True:
            try:
                data = os.read(ours, 65_536)
            except OSError:  # the other end is closed
                break
            if not data:
                break
            seen += data
    os.close(ours)
    assert child.returncode == 0
    text = seen.decode()
    assert "gemm n=256 dtype=f32" in text and "2/2" in text and "\x1b[" in text


def test_torch_functions_run_through_the_model(folder: Path) -> None:
    (folder / "t.py").write_text(
        "import cuptiprof, torch\n"
        "@cuptiprof.benchmark(params={'n': [64, 128], 'dtype': [torch.float16, torch.float32]})\n"
        "def mm(n, dtype):\n"
        "    a = torch.ones(n, n, dtype=dtype)\n"
        "    return lambda: a @ a\n"
    )
    done = bench(folder, "t.py", "--json", "o.jsonl")
    assert done.returncode == 0, done.stderr
    assert (128, "torch.float16") in points(folder / "o.jsonl")


@pytest.mark.parametrize(
    "arguments,rows",
    [
        (["bench_attention.py", "--device", "sim", "--filter", "tokens<=256,dtype=torch.bfloat16"], 4),
        (["bench_softmax.py", "--device", "sim", "-p", "width=64", "--time", "0.5"], 2),
        (["bench_sort.py", "--device", "host", "--filter", "n=1000", "--time", "0.3"], 1),
    ],
)
def test_examples(tmp_path: Path, arguments: list[str], rows: int) -> None:
    done = bench(tmp_path, EXAMPLES / arguments[0], *arguments[1:], "--format", "json", sim=False)
    assert done.returncode == 0, done.stderr
    shown = json.loads(done.stdout)["rows"]
    assert len(shown) == rows and all(r["median_ns"] > 0 for r in shown)


def test_a_sweep_from_python() -> None:
    sim = SimDevice()

    @cuptiprof.benchmark(params={"n": [100, 200, 0]})
    def f(n: int) -> Callable[[], object]:
        return lambda: sim.launch("k", duration_ns=1000 * n) if n else 1 / 0

    results = run_benchmarks(f, device="sim:A100", max_seconds=0.5)
    assert [r.measurement.median for r in results.rows if r.measurement] == [100_000.0, 200_000.0]
    assert "ZeroDivisionError" in str(results) and "chip A100" in str(results)
    assert results.report().rows[1]["n"] == 200
