"""Metrics for Prometheus, which comes and takes them."""

from __future__ import annotations

import socket
from collections.abc import Iterable, Iterator
from typing import Any

from cuptiprof.errors import SessionError
from cuptiprof.io.at_exit import before_exit
from cuptiprof.publish.published_metrics import METRICS, MetricReading, PublishedMetric
from cuptiprof.publish.publisher import Publisher
from cuptiprof.publish.session_readings import SessionReadings
from cuptiprof.publish.step_times import BOUNDS, StepHistogram

PORT = 9464
"""The one that OpenTelemetry's exporters for Prometheus have."""


class Prometheus(Publisher):
    """Answers Prometheus over HTTP while the session runs: ``cuptiprof.profile(publish=Prometheus(port=9464))``.

    Args:
        port: where to listen; 0: any that is free, see ``url``. A rank of a job listens at this port plus its number among those of its
            machine (``LOCAL_RANK``), so that ranks need not agree.
        address: of which interface; "0.0.0.0": any machine that can reach this one can read names of kernels and regions.
        registry: a ``prometheus_client.CollectorRegistry`` that the program serves itself; then there is no server of ours.

    Attributes:
        url: while the session runs, where the metrics are; empty with a registry.

    Raises (on start):
        SessionError: prometheus-client is not installed; the port is taken, or is none; the registry has such metrics.
    """

    def __init__(self, port: int = PORT, *, address: str = "127.0.0.1", registry: Any = None) -> None:
        if not isinstance(port, int) or not 0 <= port < 1 << 16:
            raise SessionError(f"Prometheus(port={port!r})", hint="a number from 0 (any that is free) to 65535")
        self._port, self._address, self._registry = port, address, registry
        self._server: Any = None
        self._collector: SessionCollector | None = None
        self.url = ""

    def open(self, readings: SessionReadings) -> None:
        try:
            import prometheus_client
        except ImportError:
            raise SessionError(
                "metrics for Prometheus need prometheus-client", hint="pip install 'cuptiprof[metrics]'"
            ) from None
        collector = SessionCollector(readings)
        if self._registry is not None:
            try:
                self._registry.register(collector)
            except ValueError as e:
                raise SessionError(f"the registry does not take these metrics: {e}") from None
            self._collector = collector
            return
        from cuptiprof.publish.scrape_server import ScrapeServer

        registry = prometheus_client.CollectorRegistry(auto_describe=False)
        registry.register(collector)
        port = self._port + readings.local_rank if self._port else 0
        try:
            self._server = ScrapeServer(self._address, port, prometheus_client.make_wsgi_app(registry))
        except (OSError, OverflowError, RuntimeError, UnicodeError) as e:
            raise SessionError(
                f"cannot listen at {_authority(self._address, port)} for Prometheus: {getattr(e, 'strerror', None) or e}",
                hint="name another port, or 0 for any that is free; of several processes on a machine each needs its own",
            ) from None
        self.url = f"http://{_authority(self._server.address, self._server.port)}/metrics"
        before_exit(self)

    def close(self) -> None:
        collector, self._collector = self._collector, None
        if collector is not None:
            self._registry.unregister(collector)
        self.end()
        self.url = ""

    def end(self) -> None:
        """The server ends; for whoever ends the interpreter."""
        if self._server is not None:
            self._server.end()


class SessionCollector:
    """A session as prometheus-client's registries ask for it."""

    def __init__(self, readings: SessionReadings) -> None:
        self._readings = readings

    def describe(self) -> Iterable[Any]:
        """The metrics without numbers."""
        return [_family(metric) for metric in METRICS]

    def collect(self) -> Iterator[Any]:
        """The metrics as they are now; those without a number are left out."""
        found = self._readings.read()
        for metric in METRICS:
            family = _family(metric)
            if metric.kind == "histogram":
                _add_steps(family, self._readings.steps.taken(), self._readings.labels)
            else:
                _add(family, metric, found[metric.name])
            if family.samples:
                yield family


def _family(metric: PublishedMetric) -> Any:
    from prometheus_client.core import Metric

    name = metric.prometheus_name
    return Metric(name, metric.text, metric.kind, unit=metric.prometheus_unit)


_SUFFIXES = {"counter": "_total", "info": "_info"}


def _add(family: Any, metric: PublishedMetric, readings: Iterable[MetricReading]) -> None:
    name = family.name + _SUFFIXES.get(metric.kind, "")
    for labels, value in readings:
        family.add_sample(name, labels, value)


def _add_steps(family: Any, steps: StepHistogram, labels: dict[str, str]) -> None:
    from prometheus_client.utils import floatToGoString

    for bound, count in zip((*BOUNDS, float("inf")), steps.counts, strict=True):
        family.add_sample(f"{family.name}_bucket", {**labels, "le": floatToGoString(bound)}, count)
    family.add_sample(f"{family.name}_count", labels, steps.counts[-1])
    family.add_sample(f"{family.name}_sum", labels, steps.seconds)


def _authority(address: str, port: int) -> str:
    try:
        socket.inet_pton(socket.AF_INET6, address)
        return f"[{address}]:{port}"
    except OSError:
        return f"{address}:{port}"
