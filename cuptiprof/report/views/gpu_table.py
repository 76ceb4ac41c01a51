"""The GPU summary of TensorBoard's plugin: what each GPU is, its peaks, and how much of it was used."""

from __future__ import annotations

from collections.abc import Sequence

from cuptiprof.analysis.utilization.gpu_figures import gpu_figures
from cuptiprof.data.result import Result
from cuptiprof.report.model import Column, View
from cuptiprof.report.views.by_rank import rank_of, table

_COLUMNS = (
    Column("rank", "Rank", "count"),
    Column("device", "GPU", "count"),
    Column("utilisation_pct", "Utilisation", "percent"),
    Column("sm_efficiency_pct", "Est. SM eff.", "percent"),
    Column("occupancy_pct", "Est. occupancy", "percent"),
    Column("span_ns", "Of", "duration", rank=1),
    Column("sms", "SMs", "count", rank=3),
    Column("compute_capability", "CC", "label", rank=4),
    Column("memory_bytes", "Memory", "bytes", rank=2),
    Column("float32_flop_per_s", "Peak FP32", "flop_rate", rank=6),
    Column("half_flop_per_s", "Peak FP16 TC", "flop_rate", rank=7),
    Column("dram_bytes_per_s", "Peak DRAM", "byte_rate", rank=5),
    Column("link_bytes_per_s", "Host link", "byte_rate", rank=8),
    Column("name", "Name", "text"),
)
_LEGEND = (
    "Utilisation: time in which any kernel ran, from the first step to the last. Est. SM eff.: SMs that had a block, by the sizes of the grids.",
    "Est. occupancy: what the launches allow, by time. Peaks and link (PCIe, one direction) are those of the data sheet, where it is known.",
)


def view(result: Result, *, demangle: bool = True, limit: int | None = None, ranks: Sequence[Result] = ()) -> View:
    """One row a rank and GPU."""
    del demangle

    def percent(share: float | None) -> float | None:
        return None if share is None else 100 * share

    rows = [
        {
            "rank": rank_of(run),
            "device": gpu.device,
            "utilisation_pct": percent(gpu.utilisation),
            "sm_efficiency_pct": percent(gpu.sm_efficiency),
            "occupancy_pct": gpu.occupancy,
            "span_ns": gpu.span,
            "sms": gpu.sms or None,
            "compute_capability": gpu.compute_capability or None,
            "memory_bytes": gpu.memory or None,
            "float32_flop_per_s": gpu.board and gpu.board.float32,
            "half_flop_per_s": (gpu.board and gpu.board.half) or None,
            "dram_bytes_per_s": gpu.board and gpu.board.dram,
            "link_bytes_per_s": gpu.board and gpu.board.link,
            "name": gpu.name or None,
        }
        for run in (result, *ranks)
        for gpu in gpu_figures(run)
    ]
    return table(result, _COLUMNS, rows, limit=limit, what="GPUs", legend=_LEGEND)
