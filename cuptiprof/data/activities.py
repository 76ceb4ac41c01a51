"""Names of what can be collected, and the CUPTI activity kinds behind them."""

from __future__ import annotations

from collections.abc import Iterable

from cuptiprof import _core
from cuptiprof.errors import CuptiprofError

ALLOCATOR = "allocator"
"""The history of PyTorch's caching allocator, which is torch's own and none of CUPTI's kinds."""

COLLECTIVES = "collectives"
"""Calls of torch.distributed, which are followed in Python."""

KINDS: dict[str, tuple[int, ...]] = {
    name: tuple(kind for other, kind in _core.ACTIVITIES if other == name) for name, _ in _core.ACTIVITIES
} | {ALLOCATOR: (), COLLECTIVES: ()}
"""Name -> values of CUpti_ActivityKind (csrc/base/codes.def)."""

ENVIRONMENT = 20
"""CUPTI_ACTIVITY_KIND_ENVIRONMENT: clocks, temperature, power and fan; collected where the system is read and NVML is not there."""

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
        hint = 'NVTX ranges are a source: sources=["nvtx"]' if unknown[0] == "nvtx" else f"one of: {', '.join(KINDS)}"
        raise CuptiprofError(f"unknown activity {unknown[0]!r}", hint=hint)
    return [k for n in dict.fromkeys(["device", "context", *wanted]) for k in KINDS[n]]
