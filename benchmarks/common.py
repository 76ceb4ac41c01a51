"""What the benchmarks share: the machine in words, cases measured in turn by the harness, results as JSON."""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import re
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy.typing as npt

try:
    import cuptiprof
    from cuptiprof.bench import Comparison, Count, Verdict
    from cuptiprof.stats.statistics import median_interval
except ImportError as e:
    # Run from the checkout, `cuptiprof` is the source folder: its native module must have been built for it.
    raise SystemExit(f"{e}\nThe benchmarks run from the checkout: pip install -e '.[all]' first") from None

Case = Callable[[], object]
"""Measures itself once: returns ns, or a mapping with "ns" and other numbers (strategy "manual" of the harness)."""
WARMUP_SECONDS = 0.01
"""Two calls of a slow case, eleven of a quick one: the first of a kind loads and plans."""
DIGITS = 5
_TIMES = 20
"""that a short piece of work is done for one value of ``least_ns``"""


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


def in_turn(cases: Mapping[str, Case], rounds: int, *, seconds: float = 600.0, strategy: str = "manual") -> Comparison:
    """Each case once a round, there and back, by the harness; fewer rounds, at least two, when `seconds` are over.

    The first case is the base. ``Comparison.verdict`` compares any two; 12 rounds are the fewest that give an interval.
    """
    return cuptiprof.compare(
        cases,
        device="host",  # the cases open their own sessions
        strategy=strategy,
        stop=Count(rounds),
        max_seconds=seconds / len(cases),
        warmup_seconds=WARMUP_SECONDS,
    )


def least_ns(work: Callable[[], object], n: int) -> float:
    """ns of one of the `n` things that the work does; the least of a few times, as what else runs here can only add to it."""
    found = []
    for _ in range(_TIMES):
        start = time.perf_counter_ns()
        work()
        found.append((time.perf_counter_ns() - start) / n)
        time.sleep(0.002)  # the decoder empties the ring
    return min(found)


def summary(samples: npt.ArrayLike, scale: float = 1.0) -> dict[str, Any]:
    """Median, its 95 % interval (``confidence``: what so few samples can give) and the samples, in units of `scale` ns."""
    i = median_interval(samples)
    values = i.median, i.low, i.high, *[float(v) for v in samples]  # type: ignore[union-attr]
    median, low, high, *each = (significant(v / scale) for v in values)
    return {"median": median, "low": low, "high": high, "confidence": significant(i.confidence), "samples": each}


def ratio(verdict: Verdict) -> dict[str, Any]:
    """A verdict as JSON: ratio of new over base, its 95 % interval (null: too few rounds for one), FASTER, SLOWER, SAME, SMALL or UNSURE."""
    return {
        "ratio": significant(verdict.ratio),
        "low": significant(verdict.low) if verdict.low > 0 else None,
        "high": significant(verdict.high) if math.isfinite(verdict.high) else None,
        "verdict": verdict.kind.value,
        "p_value": significant(verdict.p_value),
    }


def significant(value: float, digits: int = DIGITS) -> float:
    """Rounded to so many significant digits; what is a count stays exact."""
    return int(value) if value.is_integer() else float(f"{value:.{digits}g}")


def arguments(doc: str | None) -> argparse.ArgumentParser:
    """The parser every benchmark begins with."""
    parser = argparse.ArgumentParser(description=(doc or "").splitlines()[0])
    parser.add_argument("--out", type=Path, help="write the JSON there too")
    return parser


def finish(data: dict[str, Any], out: Path | None) -> None:
    """Print and write the result."""
    text = json.dumps({"machine": machine(), **data}, indent=1)
    # Series of numbers on one line: they are for programs, the rest is read.
    text = re.sub(r"\[[-+\d.eE,\s]+\]", lambda m: " ".join(m.group().split()), text)
    print(text)
    if out is not None:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(text + "\n")
