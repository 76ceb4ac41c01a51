"""torch.profiler in the process of a session: one tool at a time can hold CUPTI, and Kineto (torch.profiler's GPU side)
asks for it once in the life of a process. See docs/other-tools.md. torch is never imported here."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from typing import Any


class TorchProfilerWarning(UserWarning):
    """torch.profiler and a session use CUPTI at the same time."""


_STARTED_INSIDE = (
    "torch.profiler was started while a cuptiprof session holds CUPTI: it gets no GPU activity now, and where this is its "
    "first use, PyTorch with a Kineto older than August 2026 gets none for the rest of this process. Stop the session first"
)
_RUNNING_ALREADY = (
    "torch.profiler is running: from here on CUPTI's records come to cuptiprof, and torch.profiler misses them. Use one after "
    "the other"
)


class TorchProfilerWatch:
    """Warns when torch.profiler and this session get into each other's way: if it runs already, or is started inside.

    For that ``torch.autograd.profiler.profile._start_trace`` is another function inside, and itself again after.
    """

    def __init__(self) -> None:
        self._profile: Any = None
        self._original: Callable[..., Any] | None = None
        self._wrapped: Callable[..., Any] | None = None

    def __enter__(self) -> None:
        torch, module = sys.modules.get("torch"), sys.modules.get("torch.autograd.profiler")
        autograd = getattr(getattr(torch, "_C", None), "_autograd", None)
        enabled = getattr(autograd, "_profiler_enabled", None)
        if enabled is not None and enabled():
            warnings.warn(_RUNNING_ALREADY, TorchProfilerWarning, stacklevel=3)
        self._profile = getattr(module, "profile", None)
        original = getattr(self._profile, "_start_trace", None)
        if original is None:
            return  # torch is not imported

        def start_trace(profiler: Any, *args: Any, **kwargs: Any) -> Any:
            if any(getattr(a, "name", "") == "CUDA" for a in getattr(profiler, "kineto_activities", ())):
                warnings.warn(_STARTED_INSIDE, TorchProfilerWarning, stacklevel=3)
            return original(profiler, *args, **kwargs)

        self._original, self._wrapped = original, start_trace
        self._profile._start_trace = start_trace

    def __exit__(self, *_: object) -> None:
        # Torch is left as it was; what somebody else put in our place stays.
        if self._original is not None and vars(self._profile).get("_start_trace") is self._wrapped:
            self._profile._start_trace = self._original
        self._original = self._wrapped = None
