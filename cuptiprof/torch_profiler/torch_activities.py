"""``activities=``: torch's groups of what to collect, in ours."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from cuptiprof.errors import SessionError
from cuptiprof.text.nearest import nearest
from cuptiprof.torch_profiler.from_torch import ProfilerActivity

_OF_KINETO = {
    "CONCURRENT_KERNEL": "kernel",
    "GPU_MEMCPY": "memcpy",
    "GPU_MEMSET": "memset",
    "CUDA_RUNTIME": "runtime",
    "CUDA_DRIVER": "driver",
    "CUDA_SYNC": "sync",
    "CUDA_EVENT": "event",
    "OVERHEAD": "overhead",
}
"""Kineto's names of what CUDA can have -> ours."""


def supported_activities() -> set[Any]:
    """CPU and CUDA."""
    return {ProfilerActivity.CPU, ProfilerActivity.CUDA}


@dataclass(frozen=True)
class ActivityGroups:
    """What was asked for.

    Attributes:
        cpu: operators and annotations of the host.
        kinds: ``activities=`` of ``cuptiprof.profile``; None: its default.
    """

    cpu: bool
    kinds: list[str] | None


def parse_groups(activities: Iterable[Any] | None) -> ActivityGroups:
    """torch's ``activities``: members of ProfilerActivity, or mappings of one to Kineto's names ({CUDA: ["GPU_MEMCPY"]}).

    Raises:
        SessionError: a group or a name that is not there, or a group twice.
    """
    groups: dict[str, Iterable[str] | None] = {}
    for item in supported_activities() if activities is None else activities:
        pairs = item.items() if isinstance(item, Mapping) else [(item, None)]
        for group, names in pairs:
            name = getattr(group, "name", str(group))
            if name not in ("CPU", "CUDA"):
                raise SessionError(f"no activity {group!r} in activities=", hint=_hint(group))
            if name in groups:
                raise SessionError(f"activity {name} is given twice in activities=")
            groups[name] = names
    if not groups:
        raise SessionError("activities= is empty", hint="ProfilerActivity.CPU, ProfilerActivity.CUDA, or both")
    cpu = groups.get("CPU", ())
    cuda = groups.get("CUDA", ())
    return ActivityGroups(cpu is None or "CPU_OP" in _checked(cpu, ("CPU_OP", "USER_ANNOTATION")), _kinds(cuda))


def _kinds(names: Iterable[str] | None) -> list[str] | None:
    return None if names is None else [_OF_KINETO[name] for name in _checked(names, _OF_KINETO)]


def _checked(names: Iterable[str], known: Iterable[str]) -> list[str]:
    given = list(names)
    for name in given:
        if name not in known:
            near = nearest(str(name), known, 1)
            hint = f"did you mean {near[0]!r}?" if near else f"one of: {', '.join(known)}"
            raise SessionError(f"no activity type {name!r} in activities=", hint=hint)
    return given


def _hint(group: Any) -> str:
    if isinstance(group, str):
        return "ProfilerActivity.CPU or .CUDA; single kinds: {ProfilerActivity.CUDA: ['GPU_MEMCPY']}"
    return "cuptiprof reads NVIDIA GPUs (CUDA) and the host (CPU); torch.profiler has the others"
