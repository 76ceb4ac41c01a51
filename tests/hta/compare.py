"""Holistic Trace Analysis 0.5.0 reads our export as it reads torch.profiler's own file: the same tables from both.

python compare.py ORIGINAL_TRACE OUR_EXPORT ...      (in an environment with HolisticTraceAnalysis==0.5.0)
"""

from __future__ import annotations

import gzip
import json
import logging
import sys
import tempfile
import warnings
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

warnings.simplefilter("ignore")
from hta.trace_analysis import TraceAnalysis  # noqa: E402

logging.disable(logging.CRITICAL)
U32_MINUS_ONE = 4294967295


def read(path: str) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(gzip.decompress(Path(path).read_bytes()), parse_float=Decimal)
    return data


def original(path: str, base_ns: int) -> dict[str, Any]:
    """The original with its times from our base on, and without what HTA 0.5.0 misreads in it.

    From 1970 on, times lose up to 0.25 us in a float64, and HTA rounds to whole ones. It takes for GPU work whatever has a stream
    that is not negative: context synchronisations of older files (stream -1 as a u32), operators of Triton's that say theirs.
    """
    data = read(path)
    shift = Decimal(base_ns - data.get("baseTimeNanoseconds", 0)) / 1000
    for e in data["traceEvents"]:
        if "ts" in e:
            e["ts"] -= shift
        args = e.get("args")
        if isinstance(args, dict) and (args.get("stream") == U32_MINUS_ONE or e.get("cat") == "cpu_op"):
            args.pop("stream", None)
    return data


def tables(data: dict[str, Any], include_last: bool) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        text = json.dumps(data, indent=1, default=float)
        (Path(folder) / "rank0.json.gz").write_bytes(gzip.compress(text.encode(), 1))
        analysis = TraceAnalysis(trace_dir=folder, include_last_profiler_step=include_last)

    def launches() -> list[Any]:
        found = analysis.get_cuda_kernel_launch_stats(visualize=False)[0]
        return sorted(map(str, found[["correlation", "cpu_duration", "gpu_duration"]].to_numpy().tolist()))

    def breakdown(which: int) -> list[str]:
        found = analysis.get_gpu_kernel_breakdown(visualize=False, num_kernels=1000, duration_ratio=1.0)[which]
        return sorted(map(str, found.to_dict("records")))

    def idle() -> list[str]:
        return sorted(map(str, analysis.get_idle_time_breakdown(visualize=False)[0].to_dict("records")))

    def copies() -> list[Any]:
        # Not HTA's summary: it adds and takes away in the order of a sort that is not stable.
        events = analysis.t.get_trace(0)
        return sorted(events.loc[events["memory_bw_gbps"] > 0, "memory_bw_gbps"].tolist())

    wanted: dict[str, Callable[[], Any]] = {
        "iterations": analysis.t.get_iterations,
        "temporal": lambda: analysis.get_temporal_breakdown(visualize=False).to_dict("records"),
        "overlap": lambda: str(analysis.get_comm_comp_overlap(visualize=False).to_dict("records")),
        "types": lambda: breakdown(0),
        "kernels": lambda: breakdown(1),
        "launches": launches,
        "idle": idle,
        "copies": copies,
    }
    out = {}
    for name, table in wanted.items():
        try:
            out[name] = table()
        except Exception as e:  # HTA cannot make every table of every file: then it cannot of ours either
            out[name] = f"{type(e).__name__}: {e}"
    return out


def main() -> None:
    for name, ours in zip(sys.argv[1::2], sys.argv[2::2], strict=True):
        exported = read(ours)
        for include_last in (False, True):
            want = tables(original(name, exported["baseTimeNanoseconds"]), include_last)
            got = tables(exported, include_last)
            for table in want:
                assert got[table] == want[table], (
                    f"{name}: {table}: {str(want[table])[:500]} != {str(got[table])[:500]}"
                )
        kernels, launches = want["kernels"], want["launches"]
        print(
            f"HTA: {Path(name).name}: iterations {want['iterations']}, {len(kernels)} kernels, {len(launches)} launches agree"
        )


if __name__ == "__main__":
    main()
