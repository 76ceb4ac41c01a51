"""Names of what can be collected, and the CUPTI activity kinds behind them."""

from __future__ import annotations

from collections.abc import Iterable

from cuptiprof.errors import CuptiprofError

# name -> CUpti_ActivityKind values (cupti_activity.h)
KINDS: dict[str, tuple[int, ...]] = {
    "kernel": (10,),  # CONCURRENT_KERNEL; KERNEL (3) would serialise kernels
    "memcpy": (1, 22),  # MEMCPY, MEMCPY2 (peer to peer)
    "memset": (2,),
    "runtime": (5,),
    "driver": (4,),
    "sync": (38,),
    "event": (36,),
    "memory": (49,),  # MEMORY2
    "memory_pool": (50,),
    "overhead": (17,),
    "graph": (51,),  # GRAPH_TRACE: one record a graph launch instead of one a node
    "context": (9,),
    "device": (8,),
    "stream": (37,),
    "nvtx": (12,),  # MARKER
}

DEFAULT = (
    "kernel",
    "memcpy",
    "memset",
    "runtime",
    "driver",
    "sync",
    "overhead",
    "context",
    "device",
    "stream",
)


def kinds_of(names: Iterable[str] | None) -> list[int]:
    """Activity kinds for these names (None: the default ones), context and device always among them.

    Raises:
        CuptiprofError: an unknown name.
    """
    wanted = list(DEFAULT if names is None else names)
    unknown = [n for n in wanted if n not in KINDS]
    if unknown:
        raise CuptiprofError(f"unknown activity {unknown[0]!r}", hint=f"one of: {', '.join(KINDS)}")
    return [k for n in dict.fromkeys(["device", "context", *wanted]) for k in KINDS[n]]
