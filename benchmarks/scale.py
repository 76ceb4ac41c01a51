"""Saved runs of 10^5, 10^6, 10^7 kernels: time and peak memory of each step: python -m benchmarks.scale [--kernels N ...]

A run of N kernels with as many driver calls, copies and regions in proportion, and few launch shapes or one for every ten
kernels, is saved once; then each step (open, summary, regions, export, ...) is done in a process of its own, which opens the
run first. The floor is the summary's sums by DuckDB or pyarrow on the same Parquet. Beside each time stands the CPU's, which
other programs disturb less. Peak memory is the process's largest resident set less that after the imports. Without --kernels:
20,000 and 200,000, in less than two minutes (one where nothing else runs).
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.common import arguments, finish, significant
from benchmarks.soak import launcher

FEW = 8
NAMES = 60
LAYERS = 12
KERNELS_PER_STEP = 1200
SHAPES = {"few": lambda kernels: FEW, "many": lambda kernels: max(kernels // 10, FEW)}


def build(kernels: int, shapes: int) -> Any:
    """A training loop: steps of regions, two streams, a driver call a launch, a copy a hundred kernels."""
    from cuptiprof.data.result import Result
    from cuptiprof.data.tables import Strings, Table

    strings = Strings()
    random = np.random.default_rng(12)
    names = [f"_Z{len(n)}{n}PfS_i" for n in (f"kernel_{i:03d}" for i in range(NAMES))]
    codes = np.array([strings.code(n) for n in names], np.uint32)
    paths = ["step", *(f"step/{part}/layer{i}" for part in ("forward", "backward") for i in range(LAYERS))]
    path = np.array([strings.code(p) for p in paths], np.uint32)
    row = np.arange(kernels)
    gap = random.integers(1, 3000, kernels)
    length = random.integers(1000, 60_000, kernels)
    pair = row // 2  # one on each of two streams, side by side
    taken = np.maximum.reduceat(length + gap, np.arange(0, kernels, 2)) + 300
    start = 10**15 + (np.cumsum(taken) - taken)[pair] + row % 2 * 300
    place = row % KERNELS_PER_STEP * len(paths) // KERNELS_PER_STEP
    step = row // KERNELS_PER_STEP
    instance = (step * len(paths) + place + 1).astype(np.uint32)
    shape = (random.integers(0, shapes, kernels) if shapes > FEW else row % shapes).astype(np.uint32)
    size = np.arange(1, shapes + 1)
    tables = {
        "launch_configs": {"grid_x": size, "grid_y": np.ones(shapes, int), "grid_z": np.ones(shapes, int),
                           "block_x": np.full(shapes, 128), "block_y": np.ones(shapes, int), "block_z": np.ones(shapes, int),
                           "registers_per_thread": np.full(shapes, 40), "dynamic_shared_memory": size % 48 * 1024},
        "kernels": {"start": start, "end": start + length, "name": codes[row % NAMES], "correlation_id": row + 1, "config": shape,
                    "region": path[place], "region_instance": instance, "thread": np.full(kernels, 70),
                    "context": np.ones(kernels, int), "stream": 7 + row % 2},
        "api_calls": {"start": start - 9000, "end": start - 5000, "name": np.full(kernels, strings.code("cuLaunchKernel")),
                      "correlation_id": row + 1, "cbid": np.full(kernels, 307), "process": np.full(kernels, 9),
                      "thread": np.full(kernels, 70), "region": path[place], "region_instance": instance,
                      "domain": np.ones(kernels, int)},
    }  # fmt: skip
    copies = start[::100] + 10
    n = len(copies)
    tables["memcpys"] = {
        "start": copies, "end": copies + 700, "bytes": np.full(n, 1 << 20), "copy_kind": np.ones(n, int), "src_kind": np.full(n, 2),
        "dst_kind": np.full(n, 3), "correlation_id": kernels + 1 + np.arange(n), "region": path[place[::100]],
        "region_instance": instance[::100], "context": np.ones(n, int), "stream": np.full(n, 9), "thread": np.full(n, 70),
    }  # fmt: skip
    used, first = np.unique(instance, return_index=True)
    last = np.r_[first[1:], kernels] - 1
    inner = place[first] > 0
    begins = np.where(inner, first, np.minimum(first, kernels - 1))
    ends = np.where(inner, last, np.minimum(first + KERNELS_PER_STEP, kernels) - 1)
    tables["regions"] = {
        "start": start[begins] - 10_000, "end": start[ends] - 4000, "name": path[place[first]], "path": path[place[first]],
        "instance": used, "parent": np.where(inner, step[first] * len(paths) + 1, 0), "thread": np.full(len(used), 70),
        "depth": np.where(inner, 2, 0),
    }  # fmt: skip
    made = {name: Table.from_columns(name, columns, strings) for name, columns in tables.items()}
    made["devices"] = Table.from_columns("devices", {"device": [0], "name": ["Simulated"], "num_multiprocessors": [132],
                                                     "compute_capability_major": [9]}, strings)  # fmt: skip
    return Result(made, {"pid": 9, "clock_pairs": [[0, 0]]})


SUMMED = {"kernels": "name", "memcpys": "copy_kind", "api_calls": "name"}
"""What a summary adds up, and by what."""


def _duckdb(run: Path) -> Callable[[], object]:
    import duckdb

    duckdb.execute("SELECT 1").fetchall()
    query = """SELECT {by}, count(*), sum("end" - start), min("end" - start), max("end" - start)
               FROM read_parquet('{run}/{table}/**/*.parquet') GROUP BY ALL"""
    return lambda: [duckdb.execute(query.format(run=run, table=t, by=by)).fetchall() for t, by in SUMMED.items()]


def _pyarrow(run: Path) -> Callable[[], object]:
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    def sums(table: str, by: str) -> object:
        parts = sorted((run / table).rglob("*.parquet"))
        read = pa.concat_tables(pq.ParquetFile(part).read(columns=[by, "start", "end"]) for part in parts)
        if pa.types.is_dictionary(read.schema.field(by).type):
            read = read.unify_dictionaries()
        time_of = pa.table({"by": read.column(by), "time": pc.subtract(read.column("end"), read.column("start"))})
        return time_of.group_by("by").aggregate([("time", "count"), ("time", "sum"), ("time", "min"), ("time", "max")])

    pc.add(pa.array([1]), 1)  # what this imports (pandas, too) is no part of what is measured
    return lambda: [sums(table, by) for table, by in SUMMED.items()]


FLOORS: dict[str, Callable[[Path], Callable[[], object]]] = {"floor: duckdb": _duckdb, "floor: pyarrow": _pyarrow}

STEPS: dict[str, Callable[[Any, Path], object]] = {
    "open": lambda run, scratch: None,
    "overview": lambda run, scratch: str(run.overview()),
    "summary": lambda run, scratch: str(run.summary()),
    "advise": lambda run, scratch: str(run.advise()),
    "regions": lambda run, scratch: str(run.regions_report()),
    "critical path": lambda run, scratch: str(run.report("critical-path", limit=20)),
    "waves": lambda run, scratch: str(run.report("waves", limit=20)),
    "kernels by properties": lambda run, scratch: str(run.report("kernels-by-properties", limit=20)),
    "GPU over time": lambda run, scratch: str(run.report("gpu-series")),
    "filter": lambda run, scratch: str(run.filter("*kernel_001*").summary()),
    "one column": lambda run, scratch: run.kernels["grid_x"].max(),
    "save again": lambda run, scratch: run.save(scratch / "again"),
    "export chrome": lambda run, scratch: run.export(scratch / "trace.json"),
    "gpu-trace csv": lambda run, scratch: (scratch / "trace.csv").write_text(run.gpu_trace().to("csv")),
    "gpu-trace, 20 rows": lambda run, scratch: str(run.gpu_trace(limit=20)),
}
MADE = ("make", "summary, live", "regions, live", "save")
"""Steps on a result in memory: those of a session that has just stopped."""
SPILLED = "spilled session"
"""A session on the stand-in that keeps everything on the disk: what its end, a summary and saving take."""
BUDGET = 256_000_000
ON_THEIR_WAY = 20_000


def spilled_session(launches: int, run: Path, timed: Callable[[str, Callable[[], object]], Any]) -> None:
    """All launches, at the pace of the decoder; then what comes after them."""
    import cuptiprof

    launch, synchronize = launcher("sim")
    launch(1000)
    prof = cuptiprof.profile(device="sim", activities=["kernel"], keep="spill", spill_dir=run.parent, budget=BUDGET)

    def work() -> None:
        made = 0
        while made < launches:
            launch(min(10_000, launches - made))
            made += min(10_000, launches - made)
            while made - prof._session.counts()["kernels_received"] > ON_THEIR_WAY:
                time.sleep(0.0002)
        synchronize()

    prof.start()
    timed("launches", work)
    result = timed("stop", prof.stop)
    if len(result.kernels) != launches:
        raise SystemExit(f"{launches - len(result.kernels)} kernels are missing: {result.losses.line()}")
    timed("summary, live", lambda: str(result.summary()))
    timed("save", lambda: result.save(run))


def _peak() -> int:
    """Largest resident set of this process, bytes; what getrusage says counts the parent's until the exec."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) * 1024
    raise OSError("no VmHWM in /proc/self/status")


def child(step: str, folder: Path, kernels: int, shapes: int) -> None:
    """Does a step and prints its numbers."""
    import pyarrow.parquet  # noqa: F401  # imports are no part of what is measured

    import cuptiprof
    import cuptiprof.export.formats
    import cuptiprof.io.runs
    import cuptiprof.report

    base = _peak()
    seconds: dict[str, float] = {}
    cpu: dict[str, float] = {}
    size = 0

    def timed(name: str, action: Callable[[], object]) -> Any:
        began, worked = time.perf_counter(), time.process_time()
        done = action()
        seconds[name], cpu[name] = time.perf_counter() - began, time.process_time() - worked
        return done

    run = folder / "run"
    if step in FLOORS:
        timed(step, FLOORS[step](run))
    elif step == SPILLED:
        spilled_session(kernels, folder / "spilled", timed)
    elif step == "make":
        live = timed("make", lambda: build(kernels, shapes))
        timed("summary, live", lambda: str(live.summary()))
        timed("regions, live", lambda: str(live.regions_report()))
        timed("save", lambda: live.save(run))
        size = sum(f.stat().st_size for f in run.rglob("*") if f.is_file())
    else:
        opened = timed("open", lambda: cuptiprof.open(run))
        timed(step, lambda: STEPS[step](opened, folder)) if step != "open" else None
    print(json.dumps({"seconds": seconds, "cpu_seconds": cpu, "peak_bytes": _peak() - base, "bytes_on_disk": size}))


def measure(step: str, folder: Path, kernels: int, shapes: int, runs: int) -> dict[str, Any]:
    """The least of `runs`, each in a process of its own: other programs only ever add to a time."""
    command = [sys.executable, "-m", "benchmarks.scale", "--step", step, "--folder", str(folder)]
    command += ["--kernels", str(kernels), "--shapes", str(shapes)]
    found = []
    for _ in range(runs):
        for rest in {"again", "spilled", "trace.json", "trace.csv", *(["run"] if step == "make" else [])}:
            _remove(folder / rest)
        done = subprocess.run(command, capture_output=True, text=True, timeout=3600)
        if done.returncode != 0:
            return {"failed": done.stderr.strip().splitlines()[-1:] or ["?"]}
        found.append(json.loads(done.stdout))
    out: dict[str, Any] = {
        kind: {name: significant(float(min(f[kind][name] for f in found)), 3) for name in found[0][kind]}
        for kind in ("seconds", "cpu_seconds")
    }
    out["peak_mb"] = round(min(f["peak_bytes"] for f in found) / 1e6)
    return out | ({"bytes_on_disk": found[0]["bytes_on_disk"]} if found[0]["bytes_on_disk"] else {})


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def scenario(kernels: int, kind: str, steps: list[str], runs: int, where: Path | None) -> dict[str, Any]:
    """All steps of one size and kind of shapes; prints as it goes."""
    shapes = SHAPES[kind](kernels)
    out: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(dir=where) as folder:
        for step in ["make", *steps]:
            found = out[step] = measure(step, Path(folder), kernels, shapes, runs)
            shown = [
                f"{name} {taken:.3g} s (CPU {found['cpu_seconds'][name]:.3g})"
                for name, taken in found.get("seconds", {}).items()
            ]
            shown += [f"{found['peak_mb']} MB"] if shown else [f"{step}: {found}"]
            print(f"{kernels:>10,} kernels, {shapes:>9,} shapes  {', '.join(shown)}", file=sys.stderr, flush=True)
    return out


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--kernels", type=int, nargs="+", default=[20_000, 200_000], metavar="N")
    parser.add_argument("--kind", choices=SHAPES, nargs="+", default=list(SHAPES), help="of launch shapes")
    parser.add_argument("--steps", nargs="+", choices=[*STEPS, SPILLED, *FLOORS], default=[*STEPS, SPILLED, *FLOORS])
    parser.add_argument("--runs", type=int, default=1, help="of each step; the least time counts")
    parser.add_argument("--where", type=Path, help="folder for the runs, in place of the temporary one")
    parser.add_argument("--step", help="one step in this process, on --folder with --shapes")
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--shapes", type=int)
    options = parser.parse_args()
    if options.step:
        child(options.step, options.folder, options.kernels[0], options.shapes)
        return
    found = {
        str(kernels): {
            kind: scenario(kernels, kind, options.steps, options.runs, options.where) for kind in options.kind
        }
        for kernels in options.kernels
    }
    finish({"benchmark": "scale", "kernels": found}, options.out)


if __name__ == "__main__":
    main()
