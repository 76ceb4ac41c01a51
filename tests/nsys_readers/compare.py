"""What nsys-ai and DuckDB find in our exports is what our summary says: python compare.py FOLDER, with what run.sh puts there."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import duckdb


def main() -> None:
    folder = Path(sys.argv[1])
    rows = json.loads((folder / "summary.json").read_text())["rows"]
    ours = {
        row["name"]: row for row in rows if row["block"] == "GPU activities" and not row["name"].startswith("[CUDA mem")
    }
    kernels = json.loads((folder / "kernels.json").read_text())
    theirs = {row["kernel_name"]: row for row in kernels if "kernel_name" in row}
    if theirs.keys() != ours.keys():
        raise SystemExit(f"nsys-ai: other kernels: {theirs.keys() ^ ours.keys()}")
    for name, row in theirs.items():
        mine = ours[name]
        # It rounds to hundredths of a millisecond.
        if row["invocations"] != mine["calls"] or abs(row["total_ms"] - mine["time_ns"] / 1e6) > 0.0051:
            raise SystemExit(f"nsys-ai: {name}: {row}, by us {mine}")
    info = (folder / "info.txt").read_text()
    count = sum(row["calls"] for row in ours.values())
    if not re.search(rf"Kernels: {count}\b", info) or not re.search(r"GPU \d+: \S+.* SMs=[1-9]", info):
        raise SystemExit(f"nsys-ai info: {info}")
    query = "SELECT name, count(*), sum(duration) FROM read_parquet(?) GROUP BY name"
    found = {
        name: (calls, int(ns)) for name, calls, ns in duckdb.execute(query, [str(folder / "run.parquet")]).fetchall()
    }
    if found != {name: (row["calls"], row["time_ns"]) for name, row in ours.items()}:
        raise SystemExit(f"DuckDB: {found}")
    print(f"{len(ours)} kernels, {count:,} launches: nsys-ai and DuckDB agree")


if __name__ == "__main__":
    main()
