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
from cuptiprof.device.nvtx_injection import inject_nvtx
from cuptiprof.errors import CuptiprofError
from cuptiprof.regions.carry import carry
from cuptiprof.regions.region import region
from cuptiprof.session.profile import profile
from cuptiprof.session.schedule import schedule
from cuptiprof.version import __version__

if TYPE_CHECKING:
    from cuptiprof.bench.compare import compare
    from cuptiprof.bench.measure import bench as bench
    from cuptiprof.bench.sweep.benchmark import benchmark
    from cuptiprof.data.result import Result
    from cuptiprof.export.tensorboard import tensorboard_trace_handler
    from cuptiprof.filter.kernel_filter import KernelFilter
    from cuptiprof.filter.launch import Launch
    from cuptiprof.flight_recorder.recorder import recorder
    from cuptiprof.io.runs import open_run as open
    from cuptiprof.job.open_job import open_job

__all__ = [
    "CuptiprofError",
    "KernelFilter",
    "Launch",
    "Result",
    "__version__",
    "bench",
    "benchmark",
    "carry",
    "compare",
    "inject_nvtx",
    "open",
    "open_job",
    "profile",
    "recorder",
    "region",
    "schedule",
    "tensorboard_trace_handler",
]

_LAZY = {
    "KernelFilter": ("cuptiprof.filter.kernel_filter", "KernelFilter"),
    "Launch": ("cuptiprof.filter.launch", "Launch"),
    "Result": ("cuptiprof.data.result", "Result"),
    "benchmark": ("cuptiprof.bench.sweep.benchmark", "benchmark"),
    "compare": ("cuptiprof.bench.compare", "compare"),
    "load_ipython_extension": ("cuptiprof.integrations.ipython", "load_ipython_extension"),  # %load_ext cuptiprof
    "open": ("cuptiprof.io.runs", "open_run"),
    "open_job": ("cuptiprof.job.open_job", "open_job"),
    "recorder": ("cuptiprof.flight_recorder.recorder", "recorder"),
    "unload_ipython_extension": ("cuptiprof.integrations.ipython", "unload_ipython_extension"),
    "tensorboard_trace_handler": ("cuptiprof.export.tensorboard", "tensorboard_trace_handler"),
}


del _installed


def __dir__() -> list[str]:
    return sorted(__all__)


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
