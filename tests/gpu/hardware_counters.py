"""What tests of counters on a real GPU share: sets of metrics, and a session that takes no excuse."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import cuptiprof
from cuptiprof.counters.live import CounterWarning

DEVICE = "cuda"
CHEAP = ["achieved_occupancy", "ipc", "dram_read_throughput"]  # one pass together
SEVERAL = [*CHEAP, "inst_executed", "gld_efficiency", "l2_tex_hit_rate", "flop_count_sp"]


def collect(body: Callable[[], object], **keywords: Any) -> cuptiprof.Result:
    """What a session around `body` gives; warnings of counters are errors."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", CounterWarning)
        with cuptiprof.profile(**keywords) as prof:
            body()
        return prof.result()
