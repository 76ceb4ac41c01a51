"""NVTX ranges reach CUPTI only when NVTX is told to load it: ``NVTX_INJECTION64_PATH`` names the libcupti, before the
program's first NVTX call."""

from __future__ import annotations

import os
from collections.abc import Mapping

VARIABLE = "NVTX_INJECTION64_PATH"
MARKER = 12  # CUPTI_ACTIVITY_KIND_MARKER


def complaint(library: str, environment: Mapping[str, str] = os.environ) -> str:
    """What is wrong with the variable for a session on this libcupti; "": nothing."""
    named = environment.get(VARIABLE, "")
    if not named:
        return f"NVTX ranges are recorded only if {VARIABLE}={library} is set before the program's first NVTX call; it is not set"
    if os.path.realpath(named) != os.path.realpath(library):
        return f"NVTX ranges go to {named} ({VARIABLE}), not to the libcupti of this session: set it to {library}"
    return ""
