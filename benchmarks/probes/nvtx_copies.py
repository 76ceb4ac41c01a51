"""NVTX as a source: whether the library that a real CUDA stack loads tells us its ranges."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import cuptiprof
from benchmarks.gpu_work import Work
from cuptiprof import _core


def _calls(work: Work) -> tuple[Callable[[str], object], Callable[[], object]]:
    if work.device == "cuda":
        from torch.cuda import nvtx

        return nvtx.range_push, nvtx.range_pop
    import nvtx

    return nvtx.push_range, nvtx.pop_range


def nvtx_ranges_of_torch(work: Work) -> dict[str, Any]:
    """Which copies of NVTX are in a process with CUDA libraries, whom do they tell, and do kernels get torch.cuda.nvtx's ranges?

    Assumed: each copy that was used tells us, when the session was the first to set the variable; no kernel is without its range.
    """
    push, pop = _calls(work)
    with cuptiprof.profile(device=work.device, activities=["kernel"], sources="nvtx") as prof:
        push("outer")
        work.small(1)
        push("inner")
        work.small(2)
        pop()
        pop()
        work.synchronize()
    result = prof.result()
    named = result.kernels["nvtx"].tolist()
    copies = [{"library": library.rpartition("/")[2], "tells": state} for library, state, _ in _core.nvtx_copies()]
    return {
        "copies": copies,
        "ranges of kernels": {n: named.count(n) for n in sorted(set(named))},
        "note": result.metadata.get("note", ""),
        "as assumed": "" not in named and {"outer", "outer/inner"} <= set(named),
    }


PROBES = [nvtx_ranges_of_torch]
