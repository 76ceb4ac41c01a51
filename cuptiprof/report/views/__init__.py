"""Each view: a result's numbers as a table. ``VIEWS`` is the list of those that ``report`` and ``--view`` know by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from cuptiprof.report.model import View
from cuptiprof.report.views import (
    advice_table,
    allocator_use,
    api_trace,
    bandwidth,
    captures,
    collective_table,
    communication_table,
    gpu_series_table,
    gpu_table,
    gpu_trace,
    host_table,
    idle,
    kernel_table,
    kernel_type_table,
    launch_table,
    line_table,
    memory_path,
    memory_use,
    metrics_table,
    nvprof_metrics,
    operator_table,
    overlap,
    overview,
    path_table,
    priorities,
    property_table,
    queue,
    region_table,
    roofline_table,
    samples,
    section_pages,
    step_table,
    summary,
    system_event_table,
    system_table,
    temporal,
    wave_table,
)


class KnownView(NamedTuple):
    """`make`: (result, *, demangle: bool = True, limit: int | None = None) -> View; `limit` is rows a block.

    `of_times`: work without any is left out, and the header says so. `of_ranks`: it takes the results of further ranks as
    `ranks`, and has their rows as well.
    """

    title: str
    make: Callable[..., View]
    of_times: bool = False
    of_ranks: bool = False


VIEWS: dict[str, KnownView] = {
    "overview": KnownView("Overview", overview.view, of_times=True),
    "advise": KnownView("Advice", advice_table.view, of_times=True),
    "summary": KnownView("Profiling result", summary.view, of_times=True),
    "gpu-trace": KnownView("GPU trace", gpu_trace.view, of_times=True),
    "api-trace": KnownView("API trace", api_trace.view),
    "regions": KnownView("Regions", region_table.view, of_times=True),
    "host": KnownView("Host functions while no GPU worked", host_table.view, of_times=True),
    "lines": KnownView("GPU time by line", line_table.view, of_times=True),
    "operators": KnownView("Operators", operator_table.by_name, of_times=True),
    "operators-by-shape": KnownView("Operators by input shapes", operator_table.by_shape, of_times=True),
    "modules": KnownView("Modules", operator_table.by_module, of_times=True),
    "temporal": KnownView("Temporal breakdown", temporal.view, of_times=True, of_ranks=True),
    "kernel-types": KnownView("Kernel types", kernel_type_table.view, of_times=True, of_ranks=True),
    "overlap": KnownView("Communication beside computation", overlap.view, of_times=True, of_ranks=True),
    "idle": KnownView("Idle time by cause", idle.view, of_times=True, of_ranks=True),
    "launches": KnownView("Launches", launch_table.view, of_times=True, of_ranks=True),
    "queue": KnownView("Queue length", queue.view, of_times=True, of_ranks=True),
    "queue-series": KnownView("Queue length over time", queue.series, of_times=True, of_ranks=True),
    "bandwidth": KnownView("Memory bandwidth", bandwidth.view, of_times=True, of_ranks=True),
    "bandwidth-series": KnownView("Memory bandwidth over time", bandwidth.series, of_times=True, of_ranks=True),
    "system": KnownView("System profiling result", system_table.view),
    "system-events": KnownView("System events", system_event_table.view),
    "critical-path": KnownView("Critical path", path_table.view, of_times=True, of_ranks=True),
    "critical-path-steps": KnownView("Critical path by step", path_table.by_step, of_times=True, of_ranks=True),
    "steps": KnownView("Step time", step_table.view, of_times=True, of_ranks=True),
    "gpu": KnownView("GPU summary", gpu_table.view, of_times=True, of_ranks=True),
    "gpu-series": KnownView("GPU over time", gpu_series_table.view, of_times=True, of_ranks=True),
    "kernels": KnownView("Kernels", kernel_table.view, of_times=True),
    "kernels-by-properties": KnownView("Kernels by properties and operator", property_table.view, of_times=True),
    "waves": KnownView("Waves and tails", wave_table.view, of_times=True),
    "memory": KnownView("Memory", memory_use.view),
    "allocator": KnownView("PyTorch's caching allocator", allocator_use.view),
    "collectives": KnownView("Collectives", collective_table.view, of_ranks=True),
    "communication": KnownView("Communication across ranks", communication_table.view, of_times=True, of_ranks=True),
    "captures": KnownView("CUDA graphs by capture", captures.view, of_times=True),
    "metrics": KnownView("Metric result", nvprof_metrics.metrics_view),
    "events": KnownView("Event result", nvprof_metrics.events_view),
    "metrics-wide": KnownView("Metrics", metrics_table.wide),
    "metrics-long": KnownView("Metric values", metrics_table.long),
    "sections": KnownView("Sections", section_pages.view),
    "memory-path": KnownView("Memory paths", memory_path.view),
    "roofline": KnownView("Roofline", roofline_table.view),
    "priorities": KnownView("Kernel Optimization Priorities", priorities.view, of_times=True),
    "samples": KnownView("PM samples", samples.view),
}
