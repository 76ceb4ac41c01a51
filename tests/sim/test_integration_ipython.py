"""``%%cuptiprof`` in a real IPython shell, on the simulated device: what it shows, what it keeps, what it refuses."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from IPython.core.displaypub import CapturingDisplayPublisher
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

import cuptiprof
from cuptiprof.integrations.ipython import split_options

HOSTILE = "<script>alert(1)</script>"


class Notebook:
    """A shell, and what its last cell showed."""

    def __init__(self, shell: Any, capsys: pytest.CaptureFixture[str]) -> None:
        self.shell, self._capsys = shell, capsys
        self.published = CapturingDisplayPublisher()
        shell.display_pub = self.published
        self.html = self.text = self.said = ""

    def run(self, cell: str) -> Any:
        self.published.outputs.clear()
        self._capsys.readouterr()
        done = self.shell.run_cell(cell, store_history=True)
        shown = [output["data"] for output in self.published.outputs]
        self.html = "".join(data.get("text/html", "") for data in shown)
        self.text = "".join(data.get("text/plain", "") for data in shown)
        out, err = self._capsys.readouterr()
        self.said = out + err
        return done

    def refused(self, cell: str) -> str:
        """What is said; nothing has run, and nothing is left running."""
        self.shell.user_ns["ran"] = False
        assert not self.run(cell).success
        assert not self.shell.user_ns["ran"] and self.html == ""
        assert self.said.startswith("UsageError: ") and "Traceback" not in self.said
        cuptiprof.profile(device="sim").start().stop()
        return self.said


@pytest.fixture
def notebook(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Notebook]:
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    monkeypatch.setenv("CUPTIPROF_DEVICE", "sim")
    config = Config()
    config.HistoryManager.enabled = False
    config.InteractiveShell.colors = "NoColor"
    InteractiveShell.clear_instance()
    book = Notebook(InteractiveShell.instance(config=config), capsys)
    assert book.run("%load_ext cuptiprof\nimport torch, cuptiprof\nran = False\nx = torch.ones(4, 4)").success
    yield book
    InteractiveShell.clear_instance()


def test_a_cell(notebook: Notebook) -> None:
    done = notebook.run("%%cuptiprof\nwith cuptiprof.region('mine'):\n    y = torch.tanh(x)\ny.sum()")
    assert done.success and "SIMULATED" in notebook.html and "tanh_kernel" in notebook.html and "mine" in notebook.html
    assert "SIMULATED" in notebook.text and notebook.html.count("<table") >= 1
    assert "tensor(" in notebook.said  # the value of the cell, as ever
    assert float(notebook.shell.user_ns["y"][0, 0]) > 0.7


def test_the_result_in_a_variable(notebook: Notebook) -> None:
    assert notebook.run("%%cuptiprof -q -o r\ntorch.tanh(x); torch.softmax(x, -1)").success
    assert notebook.html == "" and len(notebook.shell.user_ns["r"].kernels) == 2
    assert notebook.run("r").success and "&lt;cuptiprof.Result" not in notebook.said


def test_options_of_run(notebook: Notebook) -> None:
    options = '-k "regex:tanh" --kernel-name-base demangled --view gpu-trace --view summary -u us --limit 1 -o r'
    notebook.run(f"%%cuptiprof {options}\nfor _ in range(3): torch.tanh(x); torch.sin(x)")
    assert "GPU activities" in notebook.html and "2 more rows" in notebook.html and "sin_kernel" not in notebook.html
    assert len(notebook.shell.user_ns["r"].kernels) == 3
    notebook.run("%%cuptiprof --metrics achieved_occupancy --device sim:A100 -c 1\ntorch.tanh(x); torch.tanh(x)")
    assert "achieved_occupancy" in notebook.html and "A100" in notebook.html


@pytest.mark.parametrize(
    "line,value",
    [
        ("float(torch.tanh(x).sum() > 12)", 1.0),
        ("-q -- -torch.ones(())", -1.0),
        ("""-o kept --kernel-name-base demangled -k "regex:tanh|x y" len({'a b': torch.tanh(x)})""", 1),
    ],
)
def test_a_statement(notebook: Notebook, line: str, value: float) -> None:
    done = notebook.run(f"%cuptiprof {line}")
    assert done.success and f"Out[2]: {value}" in notebook.said.replace("tensor(-1.)", "-1.0")
    assert ("tanh_kernel" in notebook.html) == (not line.startswith("-q"))
    if "kept" in line:
        assert len(notebook.shell.user_ns["kept"].kernels) == 1


def test_a_cell_that_fails_shows_its_own_traceback(notebook: Notebook) -> None:
    done = notebook.run("%%cuptiprof -o r\ntorch.tanh(x)\n1 / 0")
    assert not done.success  # so that "run all" ends here
    assert notebook.said.count("ZeroDivisionError") in (1, 2) and "1 / 0" in notebook.said
    assert "integrations" not in notebook.said and "run_cell_magic" not in notebook.said
    assert "tanh_kernel" in notebook.html and len(notebook.shell.user_ns["r"].kernels) == 1
    assert not notebook.run("%%cuptiprof\nif x\n").success and "SyntaxError" in notebook.said
    assert not notebook.run("%%cuptiprof -o r\ntorch.tanh(x)\nraise KeyboardInterrupt").success
    assert "KeyboardInterrupt" in notebook.said and len(notebook.shell.user_ns["r"].kernels) == 1
    cuptiprof.profile(device="sim").start().stop()


def test_what_is_refused(notebook: Notebook) -> None:
    for line, what in [
        ("--metrcs ipc", "--metrcs"),
        ("--metrics nonsense", "nonsense"),
        ("--view sumary", "sumary"),
        ("--kernels", "expected one argument"),
        ("-o 1x", "no name of a variable"),
        ("-o class", "no name of a variable"),
        ("--device sim:X", "chip 'X'"),
        ("--sources nvxt", "did you mean 'nvtx'"),
        ("--replay-mode application --metrics ipc", "application"),
        ("ran = True", "the code comes below"),
    ]:
        assert what in notebook.refused(f"%%cuptiprof {line}\nran = True"), line
    assert "STATEMENT" in notebook.refused("%cuptiprof")
    assert "nothing to run" in notebook.refused("%cuptiprof -q")


def test_inside_another_session(notebook: Notebook) -> None:
    """Refused, and the outer one goes on."""
    done = notebook.run("%%cuptiprof -o r\ntorch.tanh(x)\nget_ipython().run_line_magic('cuptiprof', 'torch.sin(x)')")
    assert not done.success and "another cuptiprof session is running" in notebook.said
    assert [name for name in notebook.shell.user_ns["r"].kernels["name"] if "tanh" in name]
    assert not notebook.run(
        "with cuptiprof.profile() as p:\n    get_ipython().run_line_magic('cuptiprof', '1')"
    ).success
    assert notebook.shell.user_ns["p"].state == "stopped"


AWAITS = "%%cuptiprof -q -o r\nimport asyncio\nawait asyncio.sleep(0)\ny = torch.tanh(x)"


def test_await(notebook: Notebook) -> None:
    """Where the event loop does not run yet, as in a terminal; where it does, as in Jupyter, it is refused in a line."""
    assert notebook.run(AWAITS).success and len(notebook.shell.user_ns["r"].kernels) == 1

    async def in_a_kernel() -> Any:
        return await notebook.shell.run_cell_async(AWAITS, transformed_cell=notebook.shell.transform_cell(AWAITS))

    notebook.shell.user_ns.pop("y")
    assert not asyncio.run(in_a_kernel()).success
    assert "y" not in notebook.shell.user_ns and cuptiprof.profile(device="sim").start().stop() is not None


def test_no_gpu(notebook: Notebook, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUPTIPROF_CUPTI", "/nowhere/libcupti.so")
    assert "hint:" in notebook.refused("%%cuptiprof --device cuda\nran = True")


def test_names_are_escaped(notebook: Notebook) -> None:
    notebook.run(f"%%cuptiprof --view regions\nwith cuptiprof.region({HOSTILE!r}): torch.tanh(x)")
    assert HOSTILE not in notebook.html and "&lt;script&gt;" in notebook.html


def test_help_and_leaving(notebook: Notebook) -> None:
    notebook.run("%cuptiprof --help")
    assert "--metrics" in notebook.said and "%%cuptiprof [options]" in notebook.said
    assert "--kernel-name" in notebook.shell.find_cell_magic("cuptiprof").__doc__
    assert notebook.run("%reload_ext cuptiprof\n%cuptiprof -q 1").success
    notebook.run("%unload_ext cuptiprof")
    assert not notebook.run("%cuptiprof 1").success and "not found" in notebook.said


def test_the_session_and_its_result_show_themselves(notebook: Notebook) -> None:
    notebook.run("p = cuptiprof.profile()\ndisplay(p)")
    assert "cuptiprof.profile: idle" in notebook.html and "<table" not in notebook.html
    notebook.run("with p: torch.tanh(x)\ndisplay(p)")
    assert "cuptiprof.profile: stopped" in notebook.html and "tanh_kernel" in notebook.html
    notebook.run("display(p.result(), p.result().kernels)")
    assert "result.kernels" in notebook.html


def test_in_a_terminal(tmp_path: Path) -> None:
    """Text, no HTML; the exit status is the cell's."""
    (tmp_path / "cells.ipy").write_text(
        "%load_ext cuptiprof\nimport torch\n%cuptiprof --device sim torch.tanh(torch.ones(4))\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "IPython", "--colors=NoColor", "cells.ipy"],
        cwd=tmp_path,
        env={"PATH": "", "HOME": str(tmp_path), "IPYTHONDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "SIMULATED" in done.stdout and "tanh_kernel" in done.stdout and "<table" not in done.stdout


def test_where_the_statement_begins() -> None:
    from argparse import ArgumentParser

    parser = ArgumentParser()
    parser.add_argument("-o", "--output")
    parser.add_argument("-q", action="store_true")
    for line, words, statement in [
        ("f(x)", [], "f(x)"),
        ("  -q  f( 'a  b' )", ["-q"], "f( 'a  b' )"),
        ("-o r f(x)", ["-o", "r"], "f(x)"),
        ("--output='a b' f", ["--output=a b"], "f"),
        ("-q -- -x", ["-q"], "-x"),
        ("-o", ["-o"], ""),
        ("-o 'unbalanced f", ["-o"], "'unbalanced f"),
        ("", [], ""),
    ]:
        assert split_options(line, parser) == (words, statement), line


def test_the_page_in_a_frame(notebook: Notebook) -> None:
    notebook.run(f"%%cuptiprof --page\nwith cuptiprof.region({HOSTILE!r}): torch.tanh(x)")
    before, _, frame = notebook.html.partition("<iframe ")
    assert "tanh_kernel" in before and notebook.html.count("<iframe ") == 1
    assert frame.startswith('sandbox="allow-scripts" ') and frame.endswith('"></iframe>')
    assert "<script" not in frame  # its own are escaped: they are the page's, not the notebook's
    assert "cuptiprof page of 'run'" in notebook.text
    notebook.run("%%cuptiprof -q --page\ntorch.tanh(x)")
    assert notebook.html == ""


def test_a_cell_that_is_watched(notebook: Notebook, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    notebook.run(
        "%%cuptiprof -q --live-remote\nfrom cuptiprof.watch.live_watcher import watchable\nwatched = watchable()"
    )
    assert notebook.shell.user_ns["watched"] == [os.getpid()]
