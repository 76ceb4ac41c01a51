"""The GPU profiler that lives inside your Python process.

>>> import cuptiprof
>>> with cuptiprof.profile() as prof:
...     with cuptiprof.region("fwd"):
...         y = model(x)
>>> print(prof.result().summary())
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cuptiprof import _installed  # first: says what is wrong where the compiled part is missing
from cuptiprof.errors import CuptiprofError
from cuptiprof.region import current_region, inherit, region
from cuptiprof.schedule import schedule
from cuptiprof.session import profile
from cuptiprof.version import __version__

if TYPE_CHECKING:
    from cuptiprof.bench.benchmark import benchmark
    from cuptiprof.bench.compare import compare
    from cuptiprof.bench.measure import bench as bench
    from cuptiprof.export.handler import tensorboard_trace_handler
    from cuptiprof.filters import KernelFilter, Launch
    from cuptiprof.result import Result
    from cuptiprof.runs import open_run as open

__all__ = [
    "CuptiprofError",
    "KernelFilter",
    "Launch",
    "Result",
    "__version__",
    "bench",
    "benchmark",
    "compare",
    "current_region",
    "inherit",
    "open",
    "profile",
    "region",
    "schedule",
    "tensorboard_trace_handler",
]

_LAZY = {
    "KernelFilter": ("cuptiprof.filters", "KernelFilter"),
    "Launch": ("cuptiprof.filters", "Launch"),
    "Result": ("cuptiprof.result", "Result"),
    "benchmark": ("cuptiprof.bench.benchmark", "benchmark"),
    "compare": ("cuptiprof.bench.compare", "compare"),
    "open": ("cuptiprof.runs", "open_run"),
    "tensorboard_trace_handler": ("cuptiprof.export.handler", "tensorboard_trace_handler"),
}


del _installed


def __getattr__(name: str) -> Any:
    if name == "bench":
        import importlib

        return importlib.import_module("cuptiprof.bench")  # a module that can be called
    if name in _LAZY:
        import importlib

        module, attribute = _LAZY[name]
        value = getattr(importlib.import_module(module), attribute)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'cuptiprof' has no attribute {name!r}")
