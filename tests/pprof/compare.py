"""Readers of pprof profiles against our summary: python compare.py FOLDER WHAT (run.sh has put what they say into the folder)."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path


def total_of_tags(text: str) -> int:
    """What Go's pprof says of all kernels: the total of the label."""
    found = re.search(r"^ *kernel: Total ([\d.]+)(ns|nanoseconds)?$", text, re.M)
    if not found:
        raise SystemExit(f"no label of kernels: {text[:300]}")
    return round(float(found[1]))


def main() -> None:
    folder, what = Path(sys.argv[1]), sys.argv[2]
    rows = [
        row for row in json.loads((folder / "summary.json").read_text())["rows"] if row["block"] == "GPU activities"
    ]
    ours = {row["name"]: [row["calls"], row["time_ns"]] for row in rows}
    decoded = json.loads((folder / "decoded.json").read_text())
    if decoded["types"][:2] != ["launches/count", "gpu_time/nanoseconds"]:
        raise SystemExit(f"sample types {decoded['types']}")
    for of in ("byLabel", "byPlace"):
        theirs = {name: values[:2] for name, values in decoded[of].items()}
        if theirs != ours:
            raise SystemExit(f"{what}, {of}: {theirs} by pprof-format, {ours} by us")
    for index, kind in enumerate(("launches", "gpu_time")):
        text, mine = (folder / f"{kind}.txt").read_text(), sum(value[index] for value in ours.values())
        if ours and (said := total_of_tags(text)) != mine:  # of a profile without samples it says nothing
            raise SystemExit(f"{what}, {kind}: {said} by Go's pprof, {mine} by us")
    print(f"{what}: {len(ours)} kernels, {sum(v[1] for v in ours.values()):,} ns")


if __name__ == "__main__":
    main()
