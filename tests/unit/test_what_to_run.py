"""The words after the options: a script, a module, or a line as it was typed without cuptiprof before."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import pytest

from cuptiprof.cli.what_to_run import find_script
from cuptiprof.errors import CuptiprofError


def found(script: str, *args: str, module: bool = False) -> tuple[str, bool, list[str]]:
    a = argparse.Namespace(script=script, module=module, args=list(args))
    find_script(a)
    return a.script, a.module, a.args


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "train.py").touch()
    (tmp_path / "bin").mkdir()
    for name, first in (("launcher", "#!/usr/bin/env python3"), ("shell", "#!/bin/sh")):
        (tmp_path / "bin" / name).write_text(first + "\n")
        (tmp_path / "bin" / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("python", ["python", "python3", "python3.12", sys.executable])
def test_an_interpreter_before_the_script(python: str) -> None:
    assert found(python, "train.py", "--lr", "1") == ("train.py", False, ["--lr", "1"])
    assert found(python, "-m", "package.train", "-v") == ("package.train", True, ["-v"])


def test_a_file_of_that_name_is_a_script(tmp_path: Path) -> None:
    (tmp_path / "python").mkdir()  # python's own rule: a folder with __main__.py is run
    assert found("python", "train.py") == ("python", False, ["train.py"])
    assert found("train.py", "python") == ("train.py", False, ["python"])
    assert found("python", "x", module=True) == ("python", True, ["x"])


def test_a_program_of_pythons_is_found(tmp_path: Path) -> None:
    assert found("launcher", "train.py") == (str(tmp_path / "bin" / "launcher"), False, ["train.py"])


@pytest.mark.parametrize(
    "words,message",
    [
        (("python",), "which script"),
        (("python", "-m"), "which script"),
        (("python", "-O", "train.py"), "python -O -m cuptiprof"),
        (("/usr/bin/python3", "train.py"), "not the Python that cuptiprof runs in"),
        (("nowhere.py",), "no such script: nowhere.py"),
        (("python", "nowhere.py"), "no such script: nowhere.py"),
        (("shell",), "no Python program"),
    ],
)
def test_what_cannot_be_run_here(words: tuple[str, ...], message: str) -> None:
    with pytest.raises(CuptiprofError) as refused:
        found(*words)
    assert message in str(refused.value) and refused.value.hint
