"""What scenarios share: sets of metrics, sessions, and results in the order of the launches."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any

from gpu import ScenarioGpu

import cuptiprof

ONE_PASS = ["ipc", "inst_executed"]
ROTATED = [*ONE_PASS, "gld_efficiency", "l1tex__t_sector_hit_rate.pct"]  # several groups of one pass
SEVERAL = ["gld_efficiency", "inst_executed", "lts__t_sector_hit_rate.pct"]  # several passes
CHEAP = ["achieved_occupancy", "ipc", "dram_read_throughput"]  # one pass together
STRATEGIES = ["replay", "iterate", "range", "sample"]


def collected(gpu: ScenarioGpu, body: Callable[[], object], **options: Any) -> cuptiprof.Result:
    """What a session around `body` gives."""
    with cuptiprof.profile(device=gpu.device, **options) as prof:
        body()
    return prof.result()


def launched(result: cuptiprof.Result) -> list[str]:
    """Names of the kernels in the order of their launches."""
    return [str(n) for n in result.kernels.sorted_by("correlation_id")["name"]]


def measured(result: cuptiprof.Result) -> list[str]:
    """Names of the rows of ``metric_ranges``, without those of "warm"."""
    return [str(n) for n in result.metric_ranges["name"] if n != "warm"]


def counted(result: cuptiprof.Result) -> dict[str, int]:
    """What happened to launches and regions that have no values."""
    return dict(result.metadata["counters"]["events"])


def launch_at_decoder_pace(gpu: ScenarioGpu, prof: cuptiprof.profile, name: str, count: int, **fields: Any) -> None:
    """Launch in batches that the decoder keeps up with. What lies in buffers that are not full is not waited for."""
    for _ in range(count // 1000):
        gpu.launch(name, count=1000, **fields)
        deadline = time.monotonic() + 5
        while time.monotonic() < deadline:
            counts = prof._session.counts()
            if counts["launches"] - counts["kernels_received"] < 2000:
                break
            time.sleep(0.0005)


class quiet_warnings(warnings.catch_warnings):  # type: ignore[type-arg]
    """Warnings are looked at elsewhere."""

    def __enter__(self) -> Any:
        out = super().__enter__()
        warnings.simplefilter("ignore")
        return out
