"""nvprof's --print-gpu-trace: every kernel, copy and set in order of start."""

from __future__ import annotations

from typing import Any

from cuptiprof import enums
from cuptiprof.report.model import Block, Column
from cuptiprof.report.names import display_name
from cuptiprof.result import Result, gpu_span

COLUMNS = [
    Column("start_ns", "Start", "start"),
    Column("duration_ns", "Duration", "time"),
    Column("grid", "Grid Size", "dims"),
    Column("block_size", "Block Size", "dims"),
    Column("registers", "Regs*", "count"),
    Column("static_shared_memory", "SSMem*", "bytes"),
    Column("dynamic_shared_memory", "DSMem*", "bytes"),
    Column("bytes", "Size", "bytes"),
    Column("throughput", "Throughput", "throughput"),
    Column("src_memory", "SrcMemType"),
    Column("dst_memory", "DstMemType"),
    Column("device", "Device"),
    Column("context", "Context", "count"),
    Column("stream", "Stream", "count"),
    Column("correlation", "Correlation", "count"),
    Column("region", "Region"),
    Column("name", "Name"),
]

LEGEND = (
    "Regs: registers per thread. SSMem, DSMem: static and dynamic shared memory per block. "
    "SrcMemType, DstMemType: where a copy reads and writes."
)


def blocks(result: Result, *, demangle: bool = True, limit: int | None = None) -> list[Block]:
    """One block; start is relative to the first GPU activity."""
    parts = []
    for name in ("kernels", "memcpys", "memsets"):
        t = result.tables[name]
        parts += list(zip(t["start"].tolist(), [name] * len(t), range(len(t)), strict=True))
    parts.sort()
    origin, _ = gpu_span(result)
    devices = dict(zip(result.devices["device"].tolist(), result.devices["name"], strict=True))
    rows = [_row(result, kind, i, origin, devices, demangle) for _, kind, i in parts[:limit]]
    note = LEGEND if rows else ""
    if limit is not None and len(parts) > limit:
        note = f"... and {len(parts) - limit} more\n" + note
    return [Block("", COLUMNS, rows, note=note)]


def _row(result: Result, kind: str, i: int, origin: int, devices: dict[int, str], demangle: bool) -> dict[str, Any]:
    t = result.tables[kind]

    def get(column: str) -> int:
        return int(t.codes(column)[i])

    start, end, device = get("start"), get("end"), get("device")
    row: dict[str, Any] = dict.fromkeys(c.key for c in COLUMNS)
    row.update(
        start_ns=start - origin,
        duration_ns=end - start,
        device=f"{devices.get(device, 'GPU')} ({device})",
        context=get("context"),
        stream=get("stream"),
        correlation=get("correlation_id"),
        region=display_name(t.strings[get("region")], False) or None,
    )
    if kind == "kernels":
        configs, c = result.launch_configs, get("config")
        row.update(
            grid=tuple(int(configs.codes(f"grid_{a}")[c]) for a in "xyz"),
            block_size=tuple(int(configs.codes(f"block_{a}")[c]) for a in "xyz"),
            registers=int(configs.codes("registers_per_thread")[c]),
            static_shared_memory=int(configs.codes("static_shared_memory")[c]),
            dynamic_shared_memory=int(configs.codes("dynamic_shared_memory")[c]),
            name=display_name(t.strings[get("name")], demangle),
        )
        return row
    row["bytes"] = get("bytes")
    row["throughput"] = row["bytes"] * 1e9 / (end - start) if end > start else None
    if kind == "memcpys":
        row["name"] = f"[CUDA memcpy {enums.MEMCPY_KINDS.get(get('copy_kind'), 'Unknown')}]"
        row["src_memory"] = enums.MEMORY_KINDS.get(get("src_kind"), "Unknown")
        row["dst_memory"] = enums.MEMORY_KINDS.get(get("dst_kind"), "Unknown")
    else:
        row["name"] = "[CUDA memset]"
        row["dst_memory"] = enums.MEMORY_KINDS.get(get("memory_kind"), "Unknown")
    return row
