"""What is torch's own, so that programs may mix ``torch.profiler``'s names with ours; without torch there are stand-ins for what
reading a saved run, or a session without PyTorch, needs."""

from __future__ import annotations

import enum
from typing import Any

from cuptiprof.errors import SessionError
from cuptiprof.regions.region import region

try:
    import torch.autograd.profiler_util as _util
    import torch.profiler as _torch
except ImportError:
    _torch = _util = None

WITHOUT_TORCH = _torch is None


class _Activity(enum.Enum):
    CPU = 0
    CUDA = 2


class _NoObserver:
    """Says that it needs torch."""

    def __init__(self) -> None:
        raise SessionError("an ExecutionTraceObserver is torch's own, and torch is not installed")


ProfilerActivity: Any = _Activity if _torch is None else _torch.ProfilerActivity
DeviceType: Any = enum.Enum("DeviceType", ["CPU", "CUDA"]) if _torch is None else _torch.DeviceType
ExecutionTraceObserver: Any = _NoObserver if _torch is None else _torch.ExecutionTraceObserver
record_function: Any = region if _torch is None else _torch.record_function


def function_event_classes() -> Any:
    """torch's module with FunctionEvent and EventList.

    Raises:
        SessionError: torch is not installed.
    """
    if _util is None:
        raise SessionError("events() gives torch's own objects, and torch is not installed", hint="result().operators")
    return _util
