"""torch.profiler's names over cuptiprof: in a training loop ``import cuptiprof.torch_profiler as profiler`` is all that changes.

What is there has torch.profiler's meaning; what is not is refused with a word on what to use: see ``docs/torch-profiler.md``.
"""

from __future__ import annotations

from typing import Any

from cuptiprof.export.tensorboard import tensorboard_trace_handler
from cuptiprof.session.schedule import Action as ProfilerAction
from cuptiprof.session.schedule import schedule
from cuptiprof.torch_profiler.from_torch import DeviceType, ExecutionTraceObserver, ProfilerActivity, record_function
from cuptiprof.torch_profiler.torch_activities import supported_activities
from cuptiprof.torch_profiler.torch_profile import TorchProfile as profile

__all__ = [
    "DeviceType",
    "ExecutionTraceObserver",
    "ProfilerAction",
    "ProfilerActivity",
    "profile",
    "record_function",
    "schedule",
    "supported_activities",
    "tensorboard_trace_handler",
]

_REFUSED = {
    "kineto_available": "cuptiprof asks CUPTI itself, not Kineto; `cuptiprof doctor` says what works here",
    "itt": "ITT ranges are VTune's; cuptiprof.region and record_function name work here",
}


def __getattr__(name: str) -> Any:
    if name in _REFUSED:
        raise AttributeError(f"cuptiprof.torch_profiler has no {name}: {_REFUSED[name]}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
