"""``run --profile-child-processes``: every Python that a script starts has a run of its own, or it is said why not."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

import cuptiprof
from cuptiprof.data.result import Result
from cuptiprof.errors import ResultError
from cuptiprof.io.run_folder import runs_in

WORK = """
import multiprocessing, os, subprocess, sys, time
from cuptiprof.sim.sim_device import SimDevice

def work(n):
    import cuptiprof
    with cuptiprof.region("child"):
        SimDevice().launch("child_kernel", count=n)
    return n
"""
MULTIPROCESSING = (
    WORK
    + """
if __name__ == "__main__":
    SimDevice().launch("main_kernel")
    context = multiprocessing.get_context(sys.argv[1])
    if sys.argv[2] == "pool":
        with context.Pool(2) as pool:
            print(sorted(pool.map(work, [1, 2, 3])))
    else:
        processes = [context.Process(target=work, args=[i], name=f"worker {i}") for i in (1, 2)]
        for p in processes: p.start()
        for p in processes: p.join()
        print([p.exitcode for p in processes])
"""
)


def run(
    folder: Path, script: str, *words: str, options: str = "-q -o out", **keywords: object
) -> subprocess.CompletedProcess[str]:
    (folder / "script.py").write_text(textwrap.dedent(script))
    command = [
        sys.executable,
        "-m",
        "cuptiprof",
        "run",
        "--device",
        "sim",
        "--profile-child-processes",
        *options.split(),
    ]
    return subprocess.run(  # type: ignore[call-overload, no-any-return]
        [*command, "script.py", *words], cwd=folder, capture_output=True, text=True, timeout=200, **keywords
    )


def opened(folder: Path) -> tuple[Result, list[Result]]:
    """The run of the main process, and those of its children."""
    all_ = [cuptiprof.open(path) for path in runs_in(folder)]
    (main,) = (r for r in all_ if "child process " not in str(r.metadata["note"])[:14])
    return main, [r for r in all_ if r is not main]


def kernels(results: list[Result]) -> int:
    return sum(list(r.kernels["name"]).count("child_kernel") for r in results)


@pytest.mark.parametrize("how", ["processes", "pool"])
@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_multiprocessing(method: str, how: str, tmp_path: Path) -> None:
    done = run(tmp_path, MULTIPROCESSING, method, how)
    assert done.returncode == 0 and done.stderr == "", done.stderr
    assert done.stdout == ("[1, 2, 3]\n" if how == "pool" else "[0, 0]\n")
    main, children = opened(tmp_path / "out")
    assert list(main.kernels["name"]) == ["main_kernel"]
    # A pool terminates its workers: what they did is there all the same.
    assert kernels(children) == (6 if how == "pool" else 3)
    assert all(set(r.kernels["region"]) == {"child"} for r in children)
    assert len({r.metadata["pid"] for r in (main, *children)}) == 1 + len(children)
    assert f"{len(children)} profiled into {tmp_path / 'out'}" in main.metadata["note"]
    if how == "processes":
        assert sorted(str(r.metadata["note"]).split(" (")[1] for r in children) == ["worker 1)", "worker 2)"]


def test_a_fork_is_said_to_be_none(tmp_path: Path) -> None:
    done = run(tmp_path, MULTIPROCESSING.replace("target=work", "target=abs"), "fork", "processes", options="-o out")
    assert done.returncode == 0 and done.stdout == "[0, 0]\n"
    main, children = opened(tmp_path / "out")
    assert not children and "2 forked (neither CUDA nor CUPTI works after a fork" in main.metadata["note"]
    assert "2 forked" in done.stderr


def test_other_programs_and_what_became_of_them(tmp_path: Path) -> None:
    """Of this Python, of one without cuptiprof, one that leaves without its exit handlers, one without any GPU work."""
    bare = tmp_path / "bare"  # as another environment's: no cuptiprof in it
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(bare)], check=True)
    script = (
        WORK
        + f"""
    def python(code, which=sys.executable):
        done = subprocess.run([which, "-c", code], capture_output=True, text=True)
        print(done.returncode, done.stdout.strip(), done.stderr.strip())
    launch = "from cuptiprof.sim.sim_device import SimDevice; SimDevice().launch('child_kernel'); "
    python(launch + "import sys; print(sys.path[0] == '', any('startup' in p for p in sys.path)); sys.exit(3)")
    python("print('bare')", {str(bare / "bin" / "python")!r})
    python(launch + "import os; os._exit(4)")
    python("print('no GPU')")
    """.replace("\n    ", "\n")
    )
    done = run(tmp_path, script)
    assert done.stdout.splitlines() == ["3 True False ", "0 bare ", "4  ", "0 no GPU "], done.stdout + done.stderr
    main, children = opened(tmp_path / "out")
    assert kernels(children) == 1
    note = main.metadata["note"]
    for said in ("4 child processes", "1 profiled", "1 used no GPU", "1 left no run (killed, or left by os._exit)",
                 "1 not profiled", "No module named"):  # fmt: skip
        assert said in note, note


def test_the_programs_own_sitecustomize(tmp_path: Path) -> None:
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text("import sys; sys.own = 1")
    code = "import sys, sitecustomize; print(sys.own, sitecustomize.__file__.split('/')[-2])"
    script = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {code!r}])"
    done = run(tmp_path, script, env={**os.environ, "PYTHONPATH": str(tmp_path / "site")})
    assert done.stdout == "1 site\n" and done.stderr == ""


def test_each_has_the_options_of_the_command_line(tmp_path: Path) -> None:
    """Counters, filters, and a name for each; grandchildren too."""
    script = """
    import os, subprocess, sys
    from cuptiprof.sim.sim_device import SimDevice
    SimDevice().launch("gemm", count=3)
    SimDevice().launch("other", count=3)
    depth = int(sys.argv[1])
    if depth:
        subprocess.run([sys.executable, sys.argv[0], str(depth - 1)], env={**os.environ, "RANK": str(depth - 1)})
    """
    options = "-q -k gemm -c 2 --metrics ipc -o run-%q{RANK}.cuptiprof"
    done = run(tmp_path, script, "2", options=options, env={k: v for k, v in os.environ.items() if k != "RANK"})
    assert done.returncode == 0 and done.stderr == "", done.stderr
    for name, rank in (("main", 0), ("1", 1), ("0", 0)):
        result = cuptiprof.open(tmp_path / f"run-{name}.cuptiprof")
        assert list(result.kernels["name"]) == ["gemm", "gemm"] and (result.kernels["ipc"] > 0).all()
        assert result.metadata["rank"] == rank


def test_reports_of_a_folder_of_runs(tmp_path: Path) -> None:
    done = run(tmp_path, MULTIPROCESSING, "spawn", "processes", options="-o out")
    assert done.stderr.count("Overview:") == 3 and "child process" in done.stderr
    with pytest.raises(ResultError, match="3 runs, one of each process") as refused:
        cuptiprof.open(tmp_path / "out")
    assert "process-" in refused.value.hint
    report = [sys.executable, "-m", "cuptiprof", "report", str(tmp_path / "out")]
    shown = subprocess.run(report, capture_output=True, text=True, check=True).stdout
    assert shown.count("Overview:") == 3 and sum("child_kernel" in each for each in shown.split("Overview:")) == 2
    again = run(tmp_path, "pass")
    assert again.returncode == 1 and "exists" in again.stderr
    assert run(tmp_path, "pass", options="-q -f -o out").returncode == 0 and len(runs_in(tmp_path / "out")) == 1
    (tmp_path / "out" / "mine.txt").touch()
    kept = run(tmp_path, "pass", options="-q -f -o out")
    assert kept.returncode == 1 and "not replaced" in kept.stderr and (tmp_path / "out" / "mine.txt").exists()


def test_without_a_name_they_are_printed(tmp_path: Path) -> None:
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    done = run(
        tmp_path, MULTIPROCESSING, "spawn", "processes", options="", env={**os.environ, "TMPDIR": str(temporary)}
    )
    assert done.stderr.count("Overview:") == 3 and done.stderr.count("Top kernels:") == 3
    assert [p for p in temporary.iterdir() if "cuptiprof" in p.name] == []


def test_one_file_for_several_processes_is_refused(tmp_path: Path) -> None:
    done = run(tmp_path, "print('ran')", options="-o trace.json")
    assert done.returncode == 1 and done.stdout == "" and "%p" in done.stderr
    done = run(tmp_path, "print('ran')", options="--metrics ipc --replay-mode application")
    assert done.returncode == 1 and done.stdout == "" and "do not go together" in done.stderr
    done = subprocess.run([sys.executable, "-I", "-m", "cuptiprof", "run", "--profile-child-processes", "script.py"],
                          cwd=tmp_path, capture_output=True, text=True)  # fmt: skip
    assert done.returncode == 1 and "ignores the environment" in done.stderr


def test_ctrl_c_of_the_whole_group(tmp_path: Path) -> None:
    """As a terminal sends it: to the children as well. Everybody's run is there, and the status is that of Ctrl-C."""
    script = (
        WORK
        + """
    if __name__ == "__main__":
        process = multiprocessing.get_context("spawn").Process(target=wait_after_work, name="worker")
        process.start()
        process.join()
    """.replace("\n    ", "\n")
    )
    script = script.replace('if __name__', 'def wait_after_work():\n    work(5)\n    open("ready", "w").close()\n    time.sleep(100)\nif __name__', 1)  # fmt: skip
    (tmp_path / "script.py").write_text(textwrap.dedent(script))
    command = [
        sys.executable,
        "-m",
        "cuptiprof",
        "run",
        "--device",
        "sim",
        "--profile-child-processes",
        "-o",
        "out",
        "script.py",
    ]
    child = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True, start_new_session=True)
    began = time.monotonic()
    while not (tmp_path / "ready").exists() and time.monotonic() - began < 100:
        time.sleep(0.05)
    os.killpg(child.pid, signal.SIGINT)
    _, told = child.communicate(timeout=100)
    assert child.returncode == -signal.SIGINT, told
    main, children = opened(tmp_path / "out")
    assert kernels(children) == 5 and "1 profiled" in main.metadata["note"], told


def test_children_that_are_not_profiled_are_mentioned(tmp_path: Path) -> None:
    script = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'import time; [0 for _ in iter(lambda: time.process_time() < 1.3, False)]'])"
    (tmp_path / "script.py").write_text(script)
    command = [sys.executable, "-m", "cuptiprof", "run", "--device", "sim", "-o", "out", "script.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=100)
    assert "--profile-child-processes profiles them" in done.stderr
    assert "child processes ran for" in cuptiprof.open(tmp_path / "out").metadata["note"]
