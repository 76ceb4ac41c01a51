"""From cells to rows, findings and text."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.overhead.conditions import Condition
from benchmarks.overhead.ratios import ratio_of, residue_of, steps_summary
from benchmarks.overhead.rounds import Cell, Cells
from benchmarks.overhead.workloads import Workload

BASELINE, KERNELS, REGIONS = "imported", "kernels", "kernels + regions"
FLOOR = "bare collector (C)"
CALLBACK, EXTERNAL = "bare + regions by callback (C)", "bare + regions by external ID (C)"


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
    out |= {"available": True, "step_ns": steps_summary(cell.during)}
    if workload.launches:
        out["ns_per_launch"] = steps_summary(cell.during, workload.launches)
    for name, value in (
        ("step_ratio", ratio_of(cell, base) if cell is not base else None),
        ("gpu_ratio", ratio_of(cell, base, "gpu") if any(cell.gpu) and cell is not base else None),
        ("residue", residue_of(cell)),
    ):
        if value is not None:
            out[name] = value
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
    """What the table was made for: which way of joining regions is cheaper, and how far from the floor kernels-only is."""
    questions = (
        ("external IDs over callbacks: below 1, external correlation is cheaper", EXTERNAL, CALLBACK),
        ("kernels over the bare collector (bar 1.10)", KERNELS, FLOOR),
        ("regions over kernels", REGIONS, KERNELS),
        ("regions over the least that callbacks cost (C)", REGIONS, CALLBACK),
    )
    out = []
    for w in workloads:
        for text, over, under in questions:
            value = ratio_of(cells.get((w.name, over)), cells.get((w.name, under)))
            if value is not None:
                out.append({"workload": w.name, "question": text, "ratio": value})
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
        step = (
            f"{r['step_ratio']['ratio']:7.3f} {interval(r['step_ratio']):>15}" if "step_ratio" in r else f"{'base':>23}"
        )
        residue = f"{r['residue']['ratio']:.3f}" if "residue" in r else ""
        lines.append(
            f"{r['condition']:38} {per['median']:10.1f} {per['p99']:9.1f} {step} {residue:>8} "
            f"{r.get('result_ms', 0):6.1f} ms {r.get('memory_bytes', 0) >> 20:5} MB{'  lost: ' + str(r['losses']) if r.get('losses') else ''}"
        )
    lines.append("")
    for f in data["findings"]:
        v = f["ratio"]
        lines.append(f"{f['workload']:24} {f['question']:66} {v['ratio']:6.3f}  ({interval(v)}) {v['verdict']}")
    return "\n".join(lines)


def interval(value: Mapping[str, Any]) -> str:
    """A ratio's interval."""
    return (
        "too few rounds"
        if value["low"] is None or value["high"] is None
        else f"{value['low']:.3f}..{value['high']:.3f}"
    )
