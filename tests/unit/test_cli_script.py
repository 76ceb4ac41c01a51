"""``cuptiprof run script.py`` beside ``python script.py``: the script must not notice, and the profile must be there."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
import warnings
from pathlib import Path

import pytest

import cuptiprof
from cuptiprof.cli.fork_warning import our_threads_do_not_count

LAUNCH = "from cuptiprof.sim.sim_device import SimDevice; SimDevice().launch('k')\n"
SCRIPTS = {
    "a child forked by the script exits": """
        import os, sys
        pid = os.fork()
        if pid == 0:
            sys.exit(3)
        print("child", os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
    """,
    "a child forked by the script goes to its end": """
        import os
        pid = os.fork()
        if pid:
            print("child", os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
    """,
    "a child forked in a session of the script's own": """
        import os, sys
        pid = os.fork()
        if pid == 0:
            raise ValueError("in the child")
        print("child", os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
    """,
    "a forked process is terminated": """
        import multiprocessing, time
        process = multiprocessing.get_context("fork").Process(target=time.sleep, args=[60])
        process.start()
        time.sleep(0.3)
        process.terminate()
        process.join()
        print(process.exitcode)
    """,
    "a pool of spawned processes": """
        import multiprocessing
        if __name__ == "__main__":
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                print(pool.map(abs, [-1, -2]))
    """,
    "a folder is entered": "import os; os.chdir('/'); print(os.getcwd())",
    "standard output is closed": "import sys; print('said'); sys.stdout.close()",
    "standard error is closed": "import sys; print('said'); sys.stderr.close()",
    "standard output is replaced": "import io, sys; sys.stdout = io.StringIO(); print('into the air')",
    "a thread outlives the main one": """
        import sys, threading, time
        def work():
            time.sleep(0.3)
            print(hasattr(sys.modules["__main__"], "work"))
        threading.Thread(target=work).start()
    """,
    "an exception, and a thread that outlives it": """
        import threading, time
        threading.Thread(target=lambda: (time.sleep(0.3), print("thread"))).start()
        raise ValueError("boom")
    """,
    "functions at exit": "import atexit, sys; atexit.register(lambda: print('at exit', 'here' in vars(sys.modules['__main__']))); here = 1",
    "Ctrl-C, and functions at exit": "import atexit; atexit.register(print, 'at exit'); raise KeyboardInterrupt",
    "a hook for exceptions": "import sys; sys.excepthook = lambda *e: print('hook', e[0].__name__); 1 / 0",
    "names": "import sys; print(__name__, __file__, __spec__, __package__, sys.argv, sys.path[:2], sorted(vars()))",
    "a syntax error": "print('no'",
    "text that ends it": "import sys; sys.exit('said')",
}


def run(command: list[str], folder: Path, **keywords: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # type: ignore[call-overload, no-any-return]
        [sys.executable, *command], cwd=folder, capture_output=True, text=True, timeout=100, **keywords
    )


@pytest.mark.parametrize("what", SCRIPTS)
def test_a_script_does_not_notice(what: str, tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(textwrap.dedent(SCRIPTS[what]))
    plain = run(["script.py", "--arg"], tmp_path)
    ours = run(["-m", "cuptiprof", "run", "--device", "sim", "-q", "-o", "out", "script.py", "--arg"], tmp_path)
    assert (ours.returncode, ours.stdout, ours.stderr) == (plain.returncode, plain.stdout, plain.stderr)
    assert cuptiprof.open(tmp_path / "out").simulated
    assert sorted(p.name for p in tmp_path.iterdir()) == ["out", "script.py"]


def test_a_fork_is_warned_of_for_the_threads_of_the_script_only() -> None:
    """What Python says from 3.12 on, and other warnings."""

    def said(text: str) -> list[str]:
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            with our_threads_do_not_count():
                warnings.warn(text, DeprecationWarning, stacklevel=1)
                ended = threading.Event()
                thread = threading.Thread(target=ended.wait)
                thread.start()
                warnings.warn(text + " Again", DeprecationWarning, stacklevel=1)
                ended.set()
                thread.join()
            warnings.warn(text + " After", DeprecationWarning, stacklevel=1)
        return [str(warning.message).removeprefix(text) for warning in seen]

    ours = threading.Event()
    thread = threading.Thread(target=ours.wait)
    thread.start()
    fork = "This process (pid=7) is multi-threaded, use of fork() may lead to deadlocks in the child."
    assert said(fork) == [" Again", " After"] and said("something else") == ["", " Again", " After"]
    ours.set()
    thread.join()


def test_a_module_does_not_notice(tmp_path: Path) -> None:
    (tmp_path / "module.py").write_text("import sys; print(__name__, __file__, __spec__.name, sys.argv, sys.path[:2])")
    plain = run(["-m", "module", "x"], tmp_path)
    ours = run(["-m", "cuptiprof", "run", "--device", "sim", "-q", "-m", "module", "x"], tmp_path)
    assert (ours.returncode, ours.stdout, ours.stderr) == (plain.returncode, plain.stdout, plain.stderr)


def test_an_ignored_sigterm_stays_ignored(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text("import os, signal; os.kill(os.getpid(), signal.SIGTERM); print('survived')")
    done = run(
        ["-m", "cuptiprof", "run", "--device", "sim", "-q", "script.py"],
        tmp_path,
        preexec_fn=lambda: signal.signal(signal.SIGTERM, signal.SIG_IGN),
    )
    assert (done.returncode, done.stdout) == (0, "survived\n"), done.stderr


def test_files_go_where_they_were_asked_for(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(LAUNCH + "import os; os.mkdir('else'); os.chdir('else')")
    done = run(
        ["-m", "cuptiprof", "run", "--device", "sim", "-o", "a.json", "--log-file", "%%.txt", "script.py"], tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert len(cuptiprof.open(tmp_path / "a.json").kernels) == 1
    assert "k" in (tmp_path / "%.txt").read_text() and list((tmp_path / "else").iterdir()) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interruption_while_the_profile_is_saved(number: int, tmp_path: Path) -> None:
    """It is saved all the same, and the process dies of the signal; a second one does not wait."""
    (tmp_path / "sitecustomize.py").write_text(
        "import os, signal, sys, time\n"
        "def patch():\n"
        "    import cuptiprof.io.run_writer as runs\n"
        "    save = runs.save_run\n"
        "    def slow(*args, **kwargs):\n"
        f"        os.kill(os.getpid(), {int(number)})\n"
        "        time.sleep(0.01)\n"
        "        if os.environ.get('TWICE'):\n"
        f"            os.kill(os.getpid(), {int(number)})\n"
        "            time.sleep(5)\n"
        "        save(*args, **kwargs)\n"
        "    runs.save_run = slow\n"
    )
    (tmp_path / "script.py").write_text(LAUNCH + "import sitecustomize; sitecustomize.patch()")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    command = ["-m", "cuptiprof", "run", "--device", "sim", "-o", "out", "script.py"]
    done = run(command, tmp_path, env=environment)
    assert done.returncode == -number and "finishing" in done.stderr, done.stderr
    assert len(cuptiprof.open(tmp_path / "out").kernels) == 1
    done = run([*command[:-2], "twice", "script.py"], tmp_path, env={**environment, "TWICE": "1"})
    assert done.returncode in (-number, 130)
    assert sorted(p.name for p in tmp_path.iterdir() if "twice" in p.name) == []


ASCII = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}


@pytest.mark.parametrize("environment", [ASCII, {"PYTHONOPTIMIZE": "2"}], ids=["ascii", "optimized"])
def test_every_command_in_a_bare_environment(environment: dict[str, str], tmp_path: Path) -> None:
    script = "import cuptiprof\nwith cuptiprof.region('r\u00e9gion \u6f22 \\ud800'):\n    " + LAUNCH
    (tmp_path / "script.py").write_text(script, encoding="utf-8")
    env = {**os.environ, **environment}
    for command in (
        ["--help"],
        ["run", "--help"],
        ["run", "--device", "sim", "-o", "out", "--log-file", "%1", "--view", "regions", "script.py"],
        ["run", "--device", "sim", "--log-file", "log.txt", "script.py"],
        ["report", "out", "--view", "regions"],
        ["report", "out", "--format", "json"],
        ["export", "out", "-o", "out.json"],
        ["demo", "--limit", "3"],
        ["doctor", "--help"],
        ["metrics", "--help"],
    ):
        done = run(["-m", "cuptiprof", *command], tmp_path, env=env)
        assert done.returncode == 0 and "Traceback" not in done.stderr, (command, done.stderr)
        if command[0] == "report" and len(command) == 4 and command[3] == "regions":
            assert "gion" in done.stdout
    assert "usage" in done.stdout


def test_no_standard_output_is_one_clear_error(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(LAUNCH)
    assert run(["-m", "cuptiprof", "run", "--device", "sim", "-q", "-o", "out", "script.py"], tmp_path).returncode == 0
    done = run(["-m", "cuptiprof", "report", "out"], tmp_path, preexec_fn=lambda: os.close(1))
    assert done.returncode == 1 and "no standard output" in done.stderr and "Traceback" not in done.stderr


def test_an_odd_rank(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(LAUNCH)
    for rank in ("\u00b2", "9" * 5000, "-1", "x"):
        done = run(
            ["-m", "cuptiprof", "run", "--device", "sim", "-q", "-f", "-o", "out", "script.py"],
            tmp_path, env={**os.environ, "RANK": rank},
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert cuptiprof.open(tmp_path / "out").metadata["rank"] == 0
