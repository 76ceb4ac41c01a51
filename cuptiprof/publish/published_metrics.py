"""The one list of metrics that a session publishes; every publisher takes names, units and texts from here.

Names and units are OpenTelemetry's (UCUM units); those of Prometheus follow from them as OpenTelemetry's specification says (Prometheus and
OpenMetrics compatibility): dots become underscores, the unit is appended, ``_total`` to counters. So a metric has one name in
Prometheus, whether it was scraped or came by OTLP.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

_UNITS = {
    "s": "seconds",
    "By": "bytes",
    "1": "ratio",
    "W": "watts",
    "Cel": "celsius",
    "Hz": "hertz",
    "By/s": "bytes_per_second",
}


class PublishedMetric(NamedTuple):
    """A metric.

    Attributes:
        unit: UCUM; "": none is appended to the name; "{kernel}": what is counted, nor is that.
        labels: which its readings have, beside ``rank`` and ``host`` in a job.
    """

    name: str
    kind: Literal["counter", "gauge", "histogram", "info"]
    unit: str
    text: str
    labels: tuple[str, ...] = ()

    @property
    def prometheus_unit(self) -> str:
        """As it ends the name; empty: none."""
        return _UNITS.get(self.unit, "")

    @property
    def prometheus_name(self) -> str:
        """Without what Prometheus's text format appends for the kind (``_total``, ``_bucket``, ``_info``)."""
        words = self.name.replace(".", "_")
        unit = self.prometheus_unit
        return f"{words}_{unit}" if unit and not words.endswith(f"_{unit}") else words


METRICS = (
    PublishedMetric("cuptiprof.session", "info", "", "The session: version, device, program and process; 1.",
                    ("version", "device", "simulated", "program", "pid")),
    PublishedMetric("cuptiprof.session.state", "gauge", "", "1 for the state that the session is in, 0 for others.", ("state",)),
    PublishedMetric("cuptiprof.session.start.time", "gauge", "s", "When the session began, since 1970."),
    PublishedMetric("cuptiprof.gpu.busy", "gauge", "1", "Part of the time in which the GPU ran anything, between the last two looks (1 s apart at least).", ("gpu",)),
    PublishedMetric("cuptiprof.gpu.busy.time", "counter", "s", "Time in which the GPU ran a kernel, a copy or a set: the union of their times.", ("gpu",)),
    PublishedMetric("cuptiprof.launches", "counter", "{launch}", "Launches of kernels that were seen."),
    PublishedMetric("cuptiprof.kernels", "counter", "{kernel}", "Kernels that ran, by name.", ("kernel",)),
    PublishedMetric("cuptiprof.kernel.time", "counter", "s", "GPU time of kernels, by name.", ("kernel",)),
    PublishedMetric("cuptiprof.region.kernels", "counter", "{kernel}", "Kernels that ran, by the innermost region of their launch.", ("region",)),
    PublishedMetric("cuptiprof.region.time", "counter", "s", "GPU time of kernels, by the innermost region of their launch.", ("region",)),
    PublishedMetric("cuptiprof.copies", "counter", "{copy}", "Copies of memory, by direction.", ("direction",)),
    PublishedMetric("cuptiprof.copy.size", "counter", "By", "Bytes that were copied, by direction.", ("direction",)),
    PublishedMetric("cuptiprof.copy.time", "counter", "s", "Time of copies, by direction.", ("direction",)),
    PublishedMetric("cuptiprof.sets", "counter", "{set}", "Sets of memory."),
    PublishedMetric("cuptiprof.set.size", "counter", "By", "Bytes that were set."),
    PublishedMetric("cuptiprof.set.time", "counter", "s", "Time of sets of memory."),
    PublishedMetric("cuptiprof.memory.allocated", "gauge", "By", 'GPU memory that was allocated and not released; with the activity "memory".'),
    PublishedMetric("cuptiprof.step.time", "histogram", "s", "Training steps, by how long they took on the host."),
    PublishedMetric("cuptiprof.losses", "counter", "{loss}", "What the session lost, by how; docs: result.losses.", ("loss",)),
    PublishedMetric("cuptiprof.missed.rows", "counter", "{row}", "Rows that are in no metric of kernels, copies and sets: the budget was too small to look at them."),
    PublishedMetric("cuptiprof.gpu.power", "gauge", "W", "Of the board, by NVML; these of the system with system=True (--system-profiling on).", ("gpu",)),
    PublishedMetric("cuptiprof.gpu.temperature", "gauge", "Cel", "Of the GPU's core, by NVML.", ("gpu",)),
    PublishedMetric("cuptiprof.gpu.sm.clock", "gauge", "Hz", "Clock of the multiprocessors, by NVML.", ("gpu",)),
    PublishedMetric("cuptiprof.gpu.memory.clock", "gauge", "Hz", "Clock of the memory, by NVML.", ("gpu",)),
    PublishedMetric("cuptiprof.gpu.memory.used", "gauge", "By", "Memory in use, by all processes, by NVML.", ("gpu",)),
    PublishedMetric("cuptiprof.gpu.utilization", "gauge", "1", "Part of the driver's last period in which any kernel ran, of any process, by NVML.", ("gpu",)),
    PublishedMetric("cuptiprof.gpu.pcie.sent", "gauge", "By/s", "By the GPU over PCIe, by NVML.", ("gpu",)),
    PublishedMetric("cuptiprof.gpu.pcie.received", "gauge", "By/s", "By the GPU over PCIe, by NVML.", ("gpu",)),
    PublishedMetric("cuptiprof.gpu.nvlink.sent", "gauge", "By/s", "By the GPU over all NVLinks, by NVML.", ("gpu",)),
    PublishedMetric("cuptiprof.gpu.nvlink.received", "gauge", "By/s", "By the GPU over all NVLinks, by NVML.", ("gpu",)),
    PublishedMetric("cuptiprof.kept", "gauge", "By", "Memory of what the session holds."),
    PublishedMetric("cuptiprof.budget", "gauge", "By", "Memory that the session may hold."),
)  # fmt: skip
"""In the order in which they are told."""

OF_THE_SYSTEM = {
    "power": ("cuptiprof.gpu.power", 1.0),
    "temperature": ("cuptiprof.gpu.temperature", 1.0),
    "sm_clock": ("cuptiprof.gpu.sm.clock", 1e6),
    "memory_clock": ("cuptiprof.gpu.memory.clock", 1e6),
    "memory_used": ("cuptiprof.gpu.memory.used", 1.0),
    "gpu_utilization": ("cuptiprof.gpu.utilization", 0.01),
    "pcie_sent": ("cuptiprof.gpu.pcie.sent", 1.0),
    "pcie_received": ("cuptiprof.gpu.pcie.received", 1.0),
    "nvlink_sent": ("cuptiprof.gpu.nvlink.sent", 1.0),
    "nvlink_received": ("cuptiprof.gpu.nvlink.received", 1.0),
}
"""Counters of ``system_samples`` -> metric, and what its unit is of the counter's."""


class MetricReading(NamedTuple):
    """A number of a metric, with its labels."""

    labels: dict[str, str]
    value: float
