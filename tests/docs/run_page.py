"""Runs what a page shows, in the current folder: python run_page.py PAGE [--write].

In the order of the page: blocks of Python in one namespace, which begins with the names that pages use without saying where they come
from (``given.py``); a block that begins with a line ``# train.py`` becomes that file; commands in a shell. What a command prints must be what
stands below it, numbers apart. ``--write`` puts there what it prints instead.
"""

from __future__ import annotations

import os
import subprocess
import sys
import traceback
from pathlib import Path
from typing import Any

from page import Block, blocks, same_output

# Says how the machine is, which may lack a GPU.
OF_THE_MACHINE = ("cuptiprof doctor", "cuptiprof doctor --json")
# Not for a test: they install, or need the repository, or leave of the kernel.
NOT_RUN = ("pip ", "pytest tests/", "perf ")


def run_page(path: Path, write: bool) -> list[str]:
    """What failed, with its place."""
    text = path.read_text()
    failures: list[str] = []
    names: dict[str, Any] = {}
    for block in blocks(text):
        where = f"{path.name}:{block.line}"
        if block.file is not None:
            Path(block.file).write_text(block.text)
        elif block.language == "python":
            names = names or given()
            try:
                exec(compile("\n" * block.line + block.text, str(path), "exec"), names)
            except BaseException as e:
                if not (isinstance(e, SystemExit) and not e.code):
                    failures.append(f"{where}: {traceback.format_exc()}")
        elif block.language in ("bash", "console"):
            text = run_commands(block, where, text, write, failures)
    if names:
        # A thread that is inside torch when the interpreter ends aborts the process.
        names["pool"].close()
        names["pool"].join()
    if write:
        path.write_text(text)
    return failures


def run_commands(block: Block, where: str, text: str, write: bool, failures: list[str]) -> str:
    for command, documented in block.commands():
        if command.startswith(NOT_RUN) or " torchrun " in command:
            continue
        what = command.partition("#")[0].strip()
        script = (
            f'set -o pipefail; python() {{ {sys.executable} "$@"; }}; pytest() {{ python -m pytest "$@"; }}; {command}'
        )
        done = subprocess.run(
            ["bash", "-c", script], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
        )
        if done.returncode and not (what in OF_THE_MACHINE and done.returncode == 1):
            failures.append(f"{where}: {command}: status {done.returncode}\n{done.stdout[-3000:]}")
            continue
        printed = done.stdout
        if block.language == "console" and not same_output(documented, printed):
            shown = f"$ {command}\n"
            if write and shown + documented in text:
                text = text.replace(shown + documented, f"{shown}{printed.rstrip()}\n", 1)
            else:
                failures.append(f"{where}: {command}\n--- as documented\n{documented}--- as printed\n{printed}")
    return text


def given() -> dict[str, Any]:
    names: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(Path(__file__).with_name("given.py").read_text(), "given.py", "exec"), names)
    return names


if __name__ == "__main__":
    os.environ.setdefault("CUPTIPROF_DEVICE", "sim")
    os.environ["PYTHONUNBUFFERED"] = "1"  # as in a terminal: what a script prints comes before the report of it
    found = run_page(Path(sys.argv[1]), "--write" in sys.argv[2:])
    for failure in found:
        print(failure, file=sys.stderr)
    print(f"{sys.argv[1]}: {len(found)} failed")
    sys.exit(bool(found))
