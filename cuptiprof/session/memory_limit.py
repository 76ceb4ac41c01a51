"""How much memory this process can have at most."""

from __future__ import annotations

import os
from pathlib import Path

_CGROUP_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


def memory_limit() -> int:
    """Bytes: the machine's memory, or what the container may use of it."""
    limits = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    for file in _CGROUP_LIMITS:
        try:
            limits.append(int(Path(file).read_text()))
        except (OSError, ValueError):  # no such limit; "max"
            continue
    return min(limits)
