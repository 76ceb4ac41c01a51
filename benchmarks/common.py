"""What the benchmarks share: the machine in words, interleaved rounds, medians with spread."""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any


def machine() -> dict[str, Any]:
    """What the numbers depend on."""
    model = ""
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            model = line.partition(":")[2].strip()
            break
    return {
        "cpu": model,
        "cores": os.cpu_count(),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "date": time.strftime("%Y-%m-%d"),
        "gpu": "none",
    }


def interleaved(cases: Mapping[str, Callable[[], float]], rounds: int) -> dict[str, list[float]]:
    """Each case once a round, in turn, so that drift of the machine hits all alike."""
    out: dict[str, list[float]] = {name: [] for name in cases}
    for _ in range(rounds):
        for name, case in cases.items():
            out[name].append(case())
    return out


def spread(values: list[float]) -> dict[str, float]:
    """Median, quartiles and extremes."""
    q = statistics.quantiles(values, n=4) if len(values) > 1 else [values[0]] * 3
    return {
        "median": round(q[1], 3),
        "q1": round(q[0], 3),
        "q3": round(q[2], 3),
        "min": round(min(values), 3),
        "max": round(max(values), 3),
        "rounds": len(values),
    }


def arguments(doc: str | None) -> argparse.ArgumentParser:
    """The parser every benchmark begins with."""
    parser = argparse.ArgumentParser(description=(doc or "").splitlines()[0])
    parser.add_argument("--out", type=Path, help="write the JSON there too")
    return parser


def finish(data: dict[str, Any], out: Path | None) -> None:
    """Print and write the result."""
    text = json.dumps({"machine": machine(), **data}, indent=1)
    print(text)
    if out is not None:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(text + "\n")
