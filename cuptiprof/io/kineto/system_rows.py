"""What was read of the system, as traces of our own have it: counters of the category "system", a process each for a GPU and the host."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np

from cuptiprof.data.system_counters import HOST, SYSTEM_COUNTERS
from cuptiprof.data.tables import Strings
from cuptiprof.io.kineto.event_rows import EventRows

BEFELL = "system_event"
"""Slices that are made of those counters, and are again where the trace is opened."""

_PROCESS = re.compile(r"GPU (\d{1,9}) System", re.ASCII)
_NONE = HOST - 1
_NAMES = list(SYSTEM_COUNTERS)


def system_samples(rows: EventRows, strings: Strings) -> dict[str, Any]:
    """Columns of ``system_samples``; counters that are none of ours are left out."""
    device = rows.of_text("pid", _device)
    counter = rows.of_text("args", lambda args: _reading(args)[0])
    value = rows.of_text("args", lambda args: _reading(args)[1], np.float64)
    rows.refuse(device == _NONE, "pid is no device of the system")
    rows.refuse(counter < 0, "args is no reading of the system")
    codes = np.array([*map(strings.code, _NAMES), 0] if len(rows) else [0], np.int64)
    return {**rows.kept({"value": value, "device": device, "counter": codes[counter]}), "timestamp": rows.start}


def _device(process: Any) -> int:
    if process == "Host System":
        return HOST
    found = _PROCESS.fullmatch(process) if isinstance(process, str) else None
    return int(found[1]) if found else _NONE


def _reading(args: Any) -> tuple[int, float]:
    """Number of the counter (-1: none) and its value; null is what is not finite."""
    if not isinstance(args, dict) or len(args) != 1:
        return -1, math.nan
    ((name, value),) = args.items()
    if name not in SYSTEM_COUNTERS or isinstance(value, bool | list | dict):
        return -1, math.nan
    try:
        return _NAMES.index(name), math.nan if value is None else float(value)
    except (ValueError, OverflowError):
        return -1, math.nan
