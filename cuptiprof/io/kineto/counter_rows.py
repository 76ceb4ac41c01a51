"""Hardware counters of a trace: Kineto writes a range (``cuda_profiler_range``) for each kernel, or one for all of a profile, with its
counters as arguments. The times of such a range are made up: the profile divided evenly."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from cuptiprof.data import enums
from cuptiprof.data.tables import Strings
from cuptiprof.io.kineto.event_rows import EventRows

_MOST_METRICS = 4096


def counter_ranges(rows: EventRows, strings: Strings) -> tuple[dict[str, Any], dict[str, Any], list[str]]:
    """Columns of ``metric_ranges`` and ``metrics``, and the names of the metrics."""
    kept = rows.kept({"name": rows.text("name"), "device": rows.count("pid"), "args": rows.token("args")})
    count = len(rows.start)
    ranges = {
        "start": rows.start,
        "end": rows.end,
        "name": kept["name"],
        "id": np.arange(1, count + 1),
        "occurrences": np.ones(count, np.int64),
        "device": kept["device"],
        "passes": np.ones(count, np.int64),
        "kind": np.full(count, enums.LAUNCH),
        "strategy": np.full(count, enums.code_of(enums.STRATEGIES, "replay")),
    }
    metrics: dict[str, list[Any]] = {name: [] for name in ("value", "metric", "range")}
    names: dict[str, None] = {}
    for i, token in enumerate(kept["args"].tolist()):
        args = rows.columns.value(token)
        for name, value in args.items() if isinstance(args, dict) else ():
            number = _finite(value)
            if number is None or (name not in names and len(names) == _MOST_METRICS):
                continue
            names[name] = None
            metrics["value"].append(number)
            metrics["metric"].append(strings.code(name))
            metrics["range"].append(i + 1)
    values = np.array(metrics["value"], np.float64)
    return (
        ranges,
        {**metrics, "value": values, "min": values, "max": values, "count": np.ones(len(values), np.int64)},
        list(names),
    )


def _finite(value: Any) -> float | None:
    if isinstance(value, bool | list | dict | None):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None
