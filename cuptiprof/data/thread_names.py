"""What threads of a run are called."""

from __future__ import annotations

import re

from cuptiprof.data.result import Result


def thread_names(result: Result) -> dict[int, str]:
    """What the program called its threads by NVTX, as far as the run's header can be believed."""
    names = result.metadata.get("nvtx_names")
    threads = names.get("threads") if isinstance(names, dict) else None
    if not isinstance(threads, dict):
        return {}
    return {
        int(n): f"{name} ({n})"
        for n, name in threads.items()
        if re.fullmatch("[0-9]{1,9}", str(n)) and isinstance(name, str)
    }
