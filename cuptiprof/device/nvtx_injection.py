"""Which library NVTX tells of its ranges. Each library that uses NVTX carries a copy of it, and each copy asks once, at its first
call: it loads what ``NVTX_INJECTION64_PATH`` names, or does nothing for the rest of the process.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Mapping
from pathlib import Path

from cuptiprof import _core
from cuptiprof.errors import DeviceError

VARIABLE = "NVTX_INJECTION64_PATH"
_OURS = "libcuptiprof_nvtx.so"


def nvtx_library() -> Path:
    """Where libcuptiprof_nvtx.so lies: beside the native module.

    Raises:
        DeviceError: it was not installed.
    """
    spec = importlib.util.find_spec("cuptiprof._core")
    folder = Path(spec.origin).parent if spec and spec.origin else Path(__file__).parent.parent
    path = folder / _OURS
    if not path.is_file():
        raise DeviceError(f"the library that NVTX loads is missing: {path}", hint="reinstall cuptiprof")
    return path


def is_ours(path: str) -> bool:
    """Whether the variable names our library, of whatever installation."""
    return os.path.basename(path) == _OURS


def inject_nvtx() -> None:
    """From now on copies of NVTX in this process report to cuptiprof, if they have made no call yet; sessions with the source
    "nvtx" then see their ranges. Call it first in the program, before what uses NVTX is imported.

    Sets ``NVTX_INJECTION64_PATH`` in this process's environment, which processes that it starts inherit, and leaves it
    alone where another tool has set it. ``cuptiprof run`` does it by itself, and so does a session with the source "nvtx" when it starts.

    Raises:
        DeviceError: the library was not installed. CuptiprofError: it cannot be loaded.
    """
    named = os.environ.get(VARIABLE, "")
    if not named:
        named = os.environ[VARIABLE] = str(nvtx_library())
    if is_ours(named):
        _core.open_nvtx_library(named)


def nvtx_complaints(environment: Mapping[str, str] = os.environ) -> list[str]:
    """What of NVTX in this process a session cannot see, and why: for people, one for each cause."""
    found: list[str] = []
    named = environment.get(VARIABLE, "")
    if named and not is_ours(named):
        found.append(
            f"NVTX ranges go to {named}, which another tool has named in {VARIABLE}: unset it to have them here"
        )
    late: list[str] = []
    for library, state, tool in _core.nvtx_copies():
        name = "/".join(Path(library).parts[-3:]) or "the program itself"
        if state == "nobody":
            late.append(name)
        elif state == "other" and tool != named:
            found.append(f"NVTX ranges of {name} go to {tool}, another tool")
    if late:
        found.append(
            f"no NVTX ranges of {', '.join(dict.fromkeys(late))}: its first call came before {VARIABLE} was set. Call "
            f"cuptiprof.inject_nvtx() before that, or use cuptiprof run"
        )
    return found


def nvtx_names() -> dict[str, dict[str, str]]:
    """What the program named by NVTX: "threads" by system thread ID, "devices" by ordinal, as JSON has them; without those of which
    nothing is named."""
    return {what: {str(n): name for n, name in names.items()} for what, names in _core.nvtx_names().items() if names}
