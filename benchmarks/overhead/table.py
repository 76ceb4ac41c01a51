"""From cells to rows, findings and text."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.overhead.conditions import Condition
from benchmarks.overhead.rounds import Cell, Cells
from benchmarks.overhead.stats import Estimate, differs_from_one, estimate, ratio_by_round
from benchmarks.overhead.workloads import Workload

BASELINE, FLOOR = "imported", "bare collector (C)"
CALLBACK, EXTERNAL, KERNELS = "kernels + regions (callback)", "kernels + regions (external)", "kernels"


def common_rounds(over: Cell, under: Cell, what: str = "during") -> tuple[list[list[float]], list[list[float]]]:
    """The rounds that both have, in order."""
    a = dict(zip(over.rounds, getattr(over, what), strict=True))
    b = dict(zip(under.rounds, getattr(under, what), strict=True))
    both = [n for n in over.rounds if n in b and a[n] and b[n]]
    return [a[n] for n in both], [b[n] for n in both]


def ratio(over: Cell | None, under: Cell | None, what: str = "during") -> Estimate | None:
    """Ratio by round; None where there is nothing to compare."""
    if over is None or under is None:
        return None
    a, b = common_rounds(over, under, what)
    return ratio_by_round(a, b) if a else None


def row(workload: Workload, condition: str, group: str, cell: Cell, base: Cell | None) -> dict[str, Any]:
    """One line of the table; ns, bytes and ratios."""
    out: dict[str, Any] = {
        "workload": workload.name,
        "condition": condition,
        "group": group,
        "rounds": len(cell.rounds),
    }
    if cell.errors:
        out["errors"] = sorted(set(cell.errors))
    if not cell.during:
        return out | {"available": False, "reason": out.get("errors", ["no round"])[0]}
    all_steps = [t for r in cell.during for t in r]
    out |= {"available": True, "step_ns": estimate(all_steps).as_dict(0)}
    if workload.launches:
        out["ns_per_launch"] = estimate([t / workload.launches for t in all_steps]).as_dict(1)
    for name, value in (
        ("step_ratio", ratio(cell, base)),
        ("gpu_ratio", ratio(cell, base, "gpu") if any(cell.gpu) else None),
        ("residue", ratio_by_round(cell.after, cell.before) if cell.after else None),
    ):
        if value is not None:
            out[name] = value.as_dict()
            if name == "residue":
                out["residue_beyond_noise"] = differs_from_one(value) and len(cell.rounds) >= 3
    if cell.memory:
        out["memory_bytes"] = max(cell.memory)
    if cell.outcomes:
        out["result_ms"] = round(statistics.median(o.result_ns for o in cell.outcomes) / 1e6, 3)
        kept = [o.records for o in cell.outcomes if o.records is not None]
        if kept:
            out["records"] = int(statistics.median(kept))
        losses: dict[str, int] = {}
        for o in cell.outcomes:
            for name, count in o.losses.items():
                losses[name] = losses.get(name, 0) + count
        out["losses"] = losses
    return out


def rows(workloads: Sequence[Workload], conditions: Sequence[Condition], cells: Cells, reasons: Mapping[str, str]) -> list[dict[str, Any]]:  # fmt: skip
    """Every workload under every condition; what cannot be had is a row with its reason."""
    out = []
    for w in workloads:
        base = cells.get((w.name, BASELINE))
        if (w.name, "nothing") in cells:
            out.append(row(w, "nothing", "baseline", cells[w.name, "nothing"], base))
        for c in conditions:
            if c.reason:
                out.append({"workload": w.name, "condition": c.name, "group": c.group, "available": False, "reason": c.reason})  # fmt: skip
            else:
                out.append(row(w, c.name, c.group, cells[w.name, c.name], base))
    out += [{"workload": name, "condition": "all", "available": False, "reason": why} for name, why in reasons.items()]
    return out


def findings(workloads: Sequence[Workload], cells: Cells) -> list[dict[str, Any]]:
    """What the table was made for: which way of attributing is cheaper, and how far from the floor kernels-only is."""
    questions = (
        ("external over callback: below 1, external correlation is cheaper", EXTERNAL, CALLBACK),
        ("kernels over the bare collector (bar 1.10)", KERNELS, FLOOR),
        ("regions by callback over kernels", CALLBACK, KERNELS),
        ("regions by external correlation over kernels", EXTERNAL, KERNELS),
    )
    out = []
    for w in workloads:
        for text, over, under in questions:
            value = ratio(cells.get((w.name, over)), cells.get((w.name, under)))
            if value is not None:
                decided = differs_from_one(value) and value.samples >= 3
                out.append({"workload": w.name, "question": text, "ratio": value.as_dict(), "beyond_noise": decided})
    return out


def text(data: Mapping[str, Any]) -> str:
    """The table for a terminal."""
    head = f"{'condition':38} {'ns/launch':>10} {'p99':>9} {'ratio':>7} {'interval':>15} {'residue':>8} {'result':>9} {'memory':>8}"
    lines = ["Simulated: nothing here is a measurement of hardware." if data["simulated"] else str(data["device"])]
    last = ""
    for r in data["rows"]:
        if r["workload"] != last:
            last = r["workload"]
            lines += ["", f"{last}", head]
        if not r["available"]:
            lines.append(f"{r['condition']:38} -  {r['reason']}")
            continue
        per = r.get("ns_per_launch", r["step_ns"])
        ratio_of = r.get("step_ratio", {"median": float("nan"), "low": float("nan"), "high": float("nan")})
        interval = f"{ratio_of['low']:.2f}..{ratio_of['high']:.2f}"
        residue = f"{r['residue']['median']:.3f}" if "residue" in r else ""
        lines.append(
            f"{r['condition']:38} {per['median']:10.1f} {per['p99']:9.1f} {ratio_of['median']:7.3f} {interval:>15} {residue:>8} "
            f"{r.get('result_ms', 0):6.1f} ms {r.get('memory_bytes', 0) >> 20:5} MB{'  lost: ' + str(r['losses']) if r.get('losses') else ''}"
        )
    lines.append("")
    for f in data["findings"]:
        v = f["ratio"]
        lines.append(f"{f['workload']:24} {f['question']:66} {v['median']:6.3f}  ({v['low']:.3f}..{v['high']:.3f})")
    return "\n".join(lines)
