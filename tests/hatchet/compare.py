"""What Hatchet finds in our export is what our reports say: python compare.py RUN.hatchet.json REGIONS.json SUMMARY.json"""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path

import hatchet


def main() -> None:
    tree, regions, summary = (json.loads(Path(name).read_text()) for name in sys.argv[1:4])
    found = hatchet.GraphFrame.from_literal(tree)
    by_region: dict[str, int] = {}
    by_kernel: Counter[str] = Counter()
    launches: Counter[str] = Counter()
    for node in found.graph.traverse():
        row = found.dataframe.loc[node]
        if node.frame["type"] == "region":
            (path,) = node.paths()
            names = [each.frame["name"] for each in path if each.frame["type"] == "region"]
            by_region["/".join(names)] = int(row["time (inc)"])
        elif node.frame["type"] in ("kernel", "memcpy", "memset", "graph"):
            by_kernel[node.frame["name"]] += int(row["time"])
            launches[node.frame["name"]] += int(row["launches"])
    ours = {row["path"]: row["gpu_total_ns"] for row in regions["rows"] if row["path"] and row["gpu_total_ns"]}
    if ours != by_region:
        raise SystemExit(f"regions: {by_region} by Hatchet, {ours} by us")
    activities = [row for row in summary["rows"] if row["block"] == "GPU activities"]
    for key, theirs in (("time_ns", by_kernel), ("calls", launches)):
        mine = {row["name"]: row[key] for row in activities}
        if mine != theirs:
            raise SystemExit(f"{key}: {theirs} by Hatchet, {mine} by us")
    root = found.graph.roots[0]
    if found.dataframe["time"].sum() != found.dataframe.loc[root, "time (inc)"]:
        raise SystemExit("the exclusive times do not add up to the root's")
    print(
        f"{Path(sys.argv[1]).name}: {len(found.dataframe):,} nodes, {len(by_region)} regions, {len(by_kernel)} kernels"
    )


if __name__ == "__main__":
    main()
