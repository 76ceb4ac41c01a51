"""The system beside the kernels: nvprof's table of it (count, mean, smallest, largest), and the last reading, as nvidia-smi shows it."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from cuptiprof.analysis.utilization.system_summary import system_series
from cuptiprof.analysis.work.counted import device_label, device_labels
from cuptiprof.data.result import Result
from cuptiprof.report.model import Column, Heading, View, left_out
from cuptiprof.text.units import format_byte_rate, format_bytes, format_percent

_SUMS = ("avg", "min", "max", "last")
_COLUMNS = (
    Column("device", "Device", "label"),
    Column("counter", "Counter", "label", human=False),
    Column("shown", "Counter", "label", machine=False),
    Column("count", "Count", "count"),
    *(Column(f"{key}_shown", key.title(), "label", machine=False) for key in _SUMS),
    *(Column(key, key.title(), "metric", human=False, unit_key="unit") for key in _SUMS),
    Column("unit", "Unit", "label", human=False),
    Column("device_ordinal", "Device", "count", human=False),
    Column("remark", "Remark", "text", rank=2),
)
_EMPTY = "no readings of the system were recorded: profile(system=True), cuptiprof run --system-profiling on"
_NO_QUANTITY = ("clock_reasons", "xid")


def _plain(value: float) -> str:
    return f"{value:.6g}"


def _state(value: float) -> str:
    """nvidia-smi's "P0"; of a mean one decimal."""
    return f"P{value:.1f}".removesuffix(".0")


_FORMATS: dict[str, Callable[[float], str]] = {
    "bytes": format_bytes, "bytes/s": format_byte_rate, "%": format_percent, "P": _state,
}  # fmt: skip
"""Units whose values are shown with them; others stand behind the counter's name."""


def view(result: Result, *, demangle: bool = True, limit: int | None = None) -> View:
    """A block a device, the host last; one row a counter."""
    del demangle
    labels = device_labels(result)
    data: dict[str, list[Any]] = {c.key: [] for c in _COLUMNS}
    found = system_series(result)
    for series in found[:limit]:
        value = series.value
        sums: tuple[float | None, ...] = (float(value.mean()), float(value.min()), float(value.max()), float(value[-1]))
        if series.counter.name in _NO_QUANTITY:
            sums = (None,) * 4
        counter = series.counter
        unit = f" ({counter.unit})" if counter.unit and counter.unit not in _FORMATS else ""
        shown = [
            None if one is None or not math.isfinite(one) else _FORMATS.get(counter.unit, _plain)(one) for one in sums
        ]
        cells = (
            device_label(labels, series.device) if series.device >= 0 else "Host", counter.label, counter.label + unit, len(value), *shown, *sums,
            counter.unit, series.device if series.device >= 0 else None, series.remark(),
        )  # fmt: skip
        for column, cell in zip(_COLUMNS, cells, strict=True):
            data[column.key].append(cell)
    return View(
        columns=_COLUMNS,
        data=data,
        footers=(*left_out(len(found), len(data["count"]), "counters"), *_facts(result)),
        headings=(Heading("device"),),
        notes={"": _EMPTY},
        facts={"system": result.metadata.get("system") or {}},
    )


def _facts(result: Result) -> tuple[str, ...]:
    facts = result.metadata.get("system")
    if not isinstance(facts, dict) or not len(result.system_samples):
        return ()
    lines = []
    if facts.get("simulated_gpus"):
        lines.append("SIMULATED: the readings of GPUs are a model's; those of the host are of this machine.")
    missed, dropped = (facts.get(key) if isinstance(facts.get(key), int) else 0 for key in ("missed", "dropped"))
    if missed or dropped:
        lines.append(f"{missed:,} readings were missed, {dropped:,} rows dropped for want of room.")
    refused = facts.get("refused")
    if isinstance(refused, dict) and refused:
        some = "; ".join(f"{name}: {why}" for name, why in list(refused.items())[:3])
        lines.append(f"Not to be had: {some}" + (f"; ... and {len(refused) - 3} more" if len(refused) > 3 else ""))
    return tuple(lines)
