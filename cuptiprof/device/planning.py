"""A libcupti to plan metrics with, on machines with and without a GPU, and where plans are kept."""

from __future__ import annotations

import os
import re
from pathlib import Path

from cuptiprof import _core
from cuptiprof.device.locate import driver_present, file_version, find_cupti, needs_driver


def planning_library(override: str | None = None) -> _core.CuptiLibrary:
    """The libcupti that a session would use; where it needs a driver and there is none, for planning only.

    From CUDA 13.2 on CUPTI plans metrics only with a driver. Without one the libnvperf beside it plans: names, units
    and configurations are the same, the number of passes of some larger sets differs by one or two from CUPTI's.

    Args:
        override: path of a libcupti; None: as `cuptiprof.device.locate.find_cupti` finds it.

    Raises:
        DeviceError: there is no libcupti, or it cannot be loaded.
    """
    found = find_cupti(override)
    if needs_driver(found.path) and not driver_present():
        return _core.planning_library(found.path, version_number(file_version(found.path)[0]))
    return _core.load_cupti(found.path, found.how)


def version_number(release: str) -> int:
    """What ``cuptiGetVersion`` of a CUDA 13 release gives: 130500 of "13.5" or "13.5 or newer"; 0: not known."""
    match = re.match(r"(\d{2})\.(\d{1,2})\b", release)
    return int(match[1]) * 10000 + int(match[2]) * 100 if match else 0


def plan_cache_dir() -> str:
    """Folder of cached plans: ``cuptiprof/plans`` in ``$XDG_CACHE_HOME``, or in ``~/.cache``; "": no such place.

    A relative ``XDG_CACHE_HOME`` is ignored, as the XDG Base Directory Specification demands.
    """
    base = os.environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(base):
        try:
            base = str(Path.home() / ".cache")
        except RuntimeError:  # neither HOME nor an entry in the password file
            return ""
    return os.path.join(base, "cuptiprof", "plans")
