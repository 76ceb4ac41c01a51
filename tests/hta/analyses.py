"""What Holistic Trace Analysis 0.5.0 finds in traces, as one JSON file: what our analyses are compared with.

python analyses.py TRACE[,TRACE of the next rank] ... > hta.json      (in an environment with HolisticTraceAnalysis==0.5.0)

``tests/data/analyses/hta.json`` is its output; tests/unit/test_analyses_hta.py compares ours with that. HTA is asked for all steps
(``include_last_profiler_step``), and sees traces without what it takes for GPU work and is none. It rounds times to
microseconds, so that it is given ns for microseconds, integers; and its sorts are made stable.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import sys
import tempfile
from collections.abc import Callable
from functools import partialmethod
from pathlib import Path
from typing import Any

import pandas as pd
from compare import original, read
from hta.trace_analysis import TraceAnalysis

# HTA sorts changes by time and leaves those of one time in any order. A stable sort leaves launches before starts.
pd.DataFrame.sort_values = partialmethod(pd.DataFrame.sort_values, kind="stable")

CONSECUTIVE_KERNEL_DELAY = 30_000  # 30 of what HTA is written for


def events(path: Path, scale: int) -> dict[str, Any]:
    """The trace with times from its first event on, times ``scale``, and no stream where no work is."""
    data = read(str(path))
    first = min((int(e["ts"]) for e in data["traceEvents"] if e.get("ph") == "X" and "ts" in e), default=0)
    data = original(str(path), first * 1000 + data.get("baseTimeNanoseconds", 0))
    for e in data["traceEvents"]:
        for key in ("ts", "dur"):
            if key in e and scale > 1:
                e[key] = round(e[key] * scale)
        if e.get("cat") == "cuda_sync" and isinstance(e.get("args"), dict):
            e["args"].pop("stream", None)
    return data


def finer_than_microseconds(files: list[Path]) -> bool:
    return any(e["dur"] % 1 for file in files for e in read(str(file))["traceEvents"] if "dur" in e)


def opened(files: list[Path], scale: int) -> TraceAnalysis:
    with tempfile.TemporaryDirectory() as folder:
        for i, file in enumerate(files):
            text = json.dumps(events(file, scale), default=float)
            (Path(folder) / f"rank{i}.json.gz").write_bytes(gzip.compress(text.encode(), 1))
        return TraceAnalysis(trace_dir=folder, include_last_profiler_step=True)


def tables(files: list[Path]) -> dict[str, Any]:
    analysis = opened(files, 1000)
    ranks = sorted(analysis.t.traces)

    def temporal() -> list[Any]:
        found = analysis.get_temporal_breakdown(visualize=False)
        return list(found.itertuples(index=False, name=None))

    def types() -> list[Any]:
        found = analysis.get_gpu_kernel_breakdown(visualize=False)[0]
        return [row for row in found.itertuples(index=False, name=None) if row[1]]  # where edges meet it has times of 0

    def overlap() -> list[Any]:
        return list(analysis.get_comm_comp_overlap(visualize=False).itertuples(index=False, name=None))

    def idle() -> list[Any]:
        out: list[Any] = []
        for rank in ranks:
            found = analysis.get_idle_time_breakdown(
                ranks=[rank], consecutive_kernel_delay=CONSECUTIVE_KERNEL_DELAY, visualize=False
            )[0]
            out += found.itertuples(index=False, name=None)
        return sorted(out, key=lambda row: row[:3])

    def launches() -> list[Any]:
        found = analysis.get_cuda_kernel_launch_stats(ranks=ranks, visualize=False)
        rows = sorted(
            (rank, *map(int, row)) for rank, of in found.items() for row in of.itertuples(index=False, name=None)
        )
        # Of thousands of rows what tells whether others are the same.
        digest = hashlib.sha256(repr(rows).encode()).hexdigest()
        return [(len(rows), *(sum(row[i] for row in rows) for i in (2, 3, 4)), digest)]

    def queue() -> list[Any]:
        return list(analysis.get_queue_length_summary(ranks=ranks).reset_index().itertuples(index=False, name=None))

    def bandwidth() -> list[Any]:
        # What took no time is given one unit: in files of whole microseconds that is to be one of them.
        of = analysis if finer_than_microseconds(files) else opened(files, 1)
        found = of.get_memory_bw_summary(ranks=ranks)
        return list(found.reset_index().itertuples(index=False, name=None))

    wanted: dict[str, Callable[[], Any]] = {
        "temporal": temporal, "types": types, "overlap": overlap, "idle": idle, "launches": launches, "queue": queue,
        "bandwidth": bandwidth,
    }  # fmt: skip
    out = {}
    for name, table in wanted.items():
        try:
            out[name] = [[plain(value) for value in row] for row in table()]
        except (IndexError, ValueError, AttributeError) as e:  # what it says of traces without GPU work
            out[name] = [f"{type(e).__name__}"]
    return out


def plain(value: Any) -> Any:
    """Integers as such, of other numbers ten digits; what is missing is null."""
    if isinstance(value, str):
        return value
    if value != value:
        return None
    return int(value) if value == int(value) else float(f"{value:.10g}")


def main() -> None:
    found = {}
    for argument in sys.argv[1:]:
        files = [Path(name) for name in argument.split(",")]
        found["+".join(file.name.partition(".")[0] for file in files)] = tables(files)
    lines = (
        f'"{trace}": {{\n' + ",\n".join(f' "{k}": {json.dumps(v)}' for k, v in of.items()) + "\n}"
        for trace, of in found.items()
    )
    print("{\n" + ",\n".join(lines) + "\n}")


if __name__ == "__main__":
    main()
