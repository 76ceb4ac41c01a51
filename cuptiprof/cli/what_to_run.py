"""The script as it is typed after other profilers' names: ``python train.py``, ``python -m package.train``, ``torchrun train.py``."""

from __future__ import annotations

import argparse
import os
import re
import shutil
import sys

from cuptiprof.errors import CuptiprofError

_INTERPRETER = re.compile(r"python(3(\.\d+)?)?")


def find_script(arguments: argparse.Namespace) -> None:
    """Set ``script``, ``module`` and ``args`` to what is to be run in this interpreter.

    Raises:
        CuptiprofError: there is no such script, or it is none of Python's.
    """
    a = arguments
    if a.module:
        return
    if _INTERPRETER.fullmatch(os.path.basename(a.script)) and not os.path.isdir(a.script):
        _skip_interpreter(a)
    if a.module or os.path.exists(a.script):
        return
    # Beside the interpreter first: an environment need not be activated.
    found = shutil.which(a.script, path=os.path.dirname(sys.executable)) or shutil.which(a.script)
    if found is not None and _is_python(found):
        a.script = found
        return
    what = f"{found} is no Python program" if found is not None else f"no such script: {a.script}"
    raise CuptiprofError(what, hint="for a module use: cuptiprof run -m MODULE")


def _skip_interpreter(a: argparse.Namespace) -> None:
    folder = os.path.dirname(a.script)
    if folder and os.path.realpath(folder) != os.path.realpath(os.path.dirname(sys.executable)):
        raise CuptiprofError(
            f"{a.script} is not the Python that cuptiprof runs in, which is {sys.executable}",
            hint=f"install cuptiprof there: {a.script} -m pip install cuptiprof",
        )
    typed = a.script
    rest = list(a.args)
    if rest and rest[0] == "-m":
        a.module = True
        rest = rest[1:]
    if not rest:
        raise CuptiprofError(f"{typed}: which script?", hint=f"for example: cuptiprof run {typed} train.py")
    if rest[0].startswith("-") and not a.module:
        raise CuptiprofError(
            f"{typed} {rest[0]}: the script runs in the Python that cuptiprof runs in, with its options",
            hint=f"give them to that one: {typed} {rest[0]} -m cuptiprof run train.py",
        )
    a.script, a.args = rest[0], rest[1:]


def _is_python(file: str) -> bool:
    """By its first line: what pip makes of an entry point, such as torchrun."""
    try:
        with open(file, "rb") as f:
            first = f.readline(200)
            return first.startswith(b"#!") and b"python" in first + f.readline(200)
    except OSError:
        return False
