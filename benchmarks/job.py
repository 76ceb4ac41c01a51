"""Fleet analyses over many partitions: time and peak memory by their number: python -m benchmarks.job [--partitions N ...]

A partition is the run of a rank with 10^5 kernels in 100 steps. Eight are made; further ones are copies of them under other ranks, in the groups of a job of so
many ranks, so that 1,000 need no more memory than eight, and as much disk as 1,000 (about 0.5 MB each). Each analysis is asked in a process of its own, by DuckDB on two threads with the
memory given by --memory. What the operating system has in its cache is not cleared. Times are this machine's CPU's (SIMULATED kernels).
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.common import arguments, finish, significant
from benchmarks.generated_job import GeneratedJob

STEPS, KERNELS = 100, 1000
SEEDS = 8
ANALYSES = ("open", "kernels", "steps", "gpus", "imbalance", "collectives", "clocks", "ranks")


def partitions(folder: Path, count: int) -> int:
    """Makes runs until there are `count`, in groups of that job; returns the bytes of one in the mean."""
    if not folder.exists():
        GeneratedJob(ranks=SEEDS, steps=STEPS, kernels=KERNELS).save(folder)
    for rank in range(count):
        run, like = folder / f"rank-{rank}.cuptiprof", rank % SEEDS
        if not run.exists():
            shutil.copytree(folder / f"rank-{like}.cuptiprof", run)
            for part in run.glob(f"*/rank={like}"):
                part.rename(part.with_name(f"rank={rank}"))
        strings = _regroup(run, rank, count)
        header = json.loads((run / "run.json").read_text())
        header["rows"]["strings"] = strings
        header["metadata"] |= {
            "rank": rank,
            "host": f"node{rank // SEEDS:03d}",
            "distributed": {"rank": rank, "world_size": count},
        }
        (run / "run.json").write_text(json.dumps(header))
    return sum(f.stat().st_size for f in folder.rglob("*") if f.is_file()) // count


def _regroup(run: Path, rank: int, count: int) -> int:
    """Calls of its collectives as those of a job of `count` ranks: of its host, and of all ranks at its place on theirs. Returns its strings."""
    first = rank - rank % SEEDS
    host = list(range(first, min(first + SEEDS, count)))
    across = list(range(rank % SEEDS, count, SEEDS))
    file = run / "collectives" / f"rank={rank}" / "part-0.parquet"
    table = pq.read_table(file, partitioning=None)
    is_host = np.array([g.startswith("host-") for g in table["group"].to_pylist()])
    new = {
        "group": np.where(is_host, f"host-{first}", f"across-{across[0]}"),
        "ranks": np.where(is_host, json.dumps(host), json.dumps(across)),
        "group_size": np.where(is_host, len(host), len(across)),
    }
    for name, values in new.items():
        field = table.schema.field(name)
        table = table.set_column(table.schema.get_field_index(name), field, pa.array(values).cast(field.type))
    pq.write_table(table, file)
    texts = run / "strings" / f"rank={rank}" / "part-0.parquet"
    known = pq.read_table(texts, partitioning=None)
    (column,) = known.column_names
    all_texts = list(dict.fromkeys([*known[column].to_pylist(), *new["group"].tolist(), *new["ranks"].tolist()]))
    pq.write_table(pa.table({column: all_texts}), texts)
    return len(all_texts)


def peak_kb() -> int:
    """The largest resident set of this process; ``getrusage`` would count its parent's before the exec, too."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:"))


def ask(folder: str, analysis: str, memory: str) -> None:
    """In a process of its own: one line of JSON."""
    import cuptiprof
    from cuptiprof.job.engines import open_tables
    from cuptiprof.job.job_report import JobQuestions

    before = peak_kb()
    began = time.perf_counter(), time.process_time()
    job = cuptiprof.open_job(folder)
    if analysis != "open":
        tables = open_tables(job, memory=memory)
        rows = len(JobQuestions(job, tables).report(analysis).rows)
    else:
        rows = len(job)
    peak = peak_kb()
    took = time.perf_counter() - began[0], time.process_time() - began[1]
    print(
        json.dumps({"rows": rows, "s": took[0], "cpu_s": took[1], "peak_mb": peak / 1024, "imports_mb": before / 1024})
    )


def main() -> None:
    parser = arguments(__doc__ or "")
    parser.add_argument("--partitions", type=int, nargs="+", default=[8, 16])
    parser.add_argument("--memory", default="2GB")
    parser.add_argument("--folder", type=Path, help="where the partitions lie, and stay (default: a temporary one)")
    parser.add_argument("--ask", nargs=2, help="used by itself")
    given = parser.parse_args()
    if given.ask:
        ask(*given.ask, given.memory)
        return
    found: dict[str, Any] = {
        "kernels_per_partition": STEPS * KERNELS,
        "memory": given.memory,
        "simulated": True,
        "asked": [],
    }
    with tempfile.TemporaryDirectory() as temporary:
        for count in sorted(given.partitions):
            # Of other sizes nothing is kept beside each other: the disk holds one job.
            folder = (given.folder or Path(temporary)) / "job"
            size = partitions(folder, count)
            for analysis in ANALYSES:
                command = [
                    sys.executable,
                    "-m",
                    "benchmarks.job",
                    "--ask",
                    str(folder),
                    analysis,
                    "--memory",
                    given.memory,
                ]
                done = subprocess.run(command, capture_output=True, text=True)
                if done.returncode:
                    raise SystemExit(done.stderr[-3000:])
                row = {"partitions": count, "partition_bytes": size, "analysis": analysis, **json.loads(done.stdout)}
                found["asked"].append({k: significant(v) if isinstance(v, float) else v for k, v in row.items()})
                print(
                    f"{count:6,} {analysis:12} {row['s']:8.2f} s {row['cpu_s']:8.2f} s CPU {row['peak_mb']:8.0f} MB peak",
                    flush=True,
                )
    finish({"benchmark": "job", **found}, given.out)


if __name__ == "__main__":
    main()
