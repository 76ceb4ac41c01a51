"""Metrics for OpenTelemetry: sent by OTLP, or to whatever an exporter of the SDK sends to."""

from __future__ import annotations

import contextlib
import math
import os
import socket
import threading
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

from cuptiprof.errors import SessionError
from cuptiprof.io.at_exit import before_exit
from cuptiprof.publish.published_metrics import METRICS, PublishedMetric
from cuptiprof.publish.publisher import Publisher
from cuptiprof.publish.session_readings import Readings, SessionReadings
from cuptiprof.publish.step_times import BOUNDS
from cuptiprof.version import __version__

_PATIENCE = 3.0  # s that the end of a session waits for the last numbers to be taken
_EVERY = 60.0  # s; OpenTelemetry's own default
_PATH = "/v1/metrics"


class OpenTelemetry(Publisher):
    """Sends what the session collects every minute, and its last numbers when it ends: ``cuptiprof.profile(publish=OpenTelemetry())``.

    The SDK's own classes do it, so that the environment variables of OpenTelemetry mean what they mean elsewhere:
    ``OTEL_EXPORTER_OTLP_ENDPOINT``, ``_HEADERS``, ``_TIMEOUT``, ``_COMPRESSION``, ``OTEL_SERVICE_NAME``, ``OTEL_RESOURCE_ATTRIBUTES``,
    ``OTEL_METRIC_EXPORT_INTERVAL``, ``OTEL_SDK_DISABLED``.

    Args:
        endpoint: of a collector, as ``OTEL_EXPORTER_OTLP_ENDPOINT``: "http://localhost:4318"; ``/v1/metrics`` is appended. None: the environment's,
            else that one.
        every: s between two exports; None: ``OTEL_METRIC_EXPORT_INTERVAL`` (ms), else 60 s.
        exporter: called when a session starts, gives a ``MetricExporter`` of the SDK that is used instead of OTLP over HTTP and shut down
            with the session; the class ``ConsoleMetricExporter``, for example.

    Raises (on start):
        SessionError: the SDK is not installed; a protocol that is not OTLP over HTTP is asked for.
    """

    def __init__(
        self, endpoint: str | None = None, *, every: float | None = None, exporter: Callable[[], Any] | None = None
    ) -> None:
        if every is not None and not every > 0:
            raise SessionError(f"OpenTelemetry(every={every!r})", hint="seconds, more than 0")
        if endpoint is not None and exporter is not None:
            raise SessionError("OpenTelemetry(endpoint=, exporter=)", hint="an exporter knows its own endpoint")
        self._endpoint, self._every, self._make_exporter = endpoint, every, exporter
        self._export: _Export | None = None

    def open(self, readings: SessionReadings) -> None:
        try:
            exporter = self._make_exporter() if self._make_exporter is not None else _otlp_exporter(self._endpoint)
            self._export = _Export(readings, exporter, self._every or _interval(os.environ))
        except ImportError as e:
            raise SessionError(
                f"metrics for OpenTelemetry need its SDK: {e}", hint="pip install 'cuptiprof[metrics]'"
            ) from None
        except RuntimeError as e:
            raise SessionError(f"cannot publish: {e}", hint="the limit on threads (ulimit -u) is reached") from None

    def close(self) -> None:
        if self._export is not None:
            self._export.end()


def _otlp_exporter(endpoint: str | None) -> Any:
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter

    protocol = os.environ.get("OTEL_EXPORTER_OTLP_METRICS_PROTOCOL") or os.environ.get("OTEL_EXPORTER_OTLP_PROTOCOL")
    if endpoint is None and protocol not in (None, "", "http/protobuf"):
        raise SessionError(
            f"OTEL_EXPORTER_OTLP_PROTOCOL={protocol}: metrics go by http/protobuf",
            hint="name an endpoint that speaks it, or give exporter= (opentelemetry-exporter-otlp-proto-grpc has one)",
        )
    if endpoint is None:
        return OTLPMetricExporter()
    if not endpoint.startswith(("http://", "https://")):
        raise SessionError(f"{endpoint!r} is no endpoint of OTLP over HTTP", hint="as http://localhost:4318")
    base = endpoint.rstrip("/")
    return OTLPMetricExporter(endpoint=base if base.endswith(_PATH) else base + _PATH)


def _interval(environment: os._Environ[str]) -> float:
    """s."""
    try:
        milliseconds = float(environment.get("OTEL_METRIC_EXPORT_INTERVAL", ""))
    except ValueError:
        return _EVERY
    return milliseconds / 1e3 if 0 < milliseconds < math.inf else _EVERY


class _Export:
    """The SDK's provider, reader and instruments of one session, and the thread that exports.

    The reader has no thread of its own: that one would go on in a forked child, and send the parent's numbers from there.
    """

    def __init__(self, readings: SessionReadings, exporter: Any, every: float) -> None:
        from opentelemetry.sdk.metrics import MeterProvider
        from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader

        self._readings = readings
        self._now: Readings = {}
        self._ended: deque[float] = (
            deque()
        )  # steps, s: the SDK takes microseconds for each, here and not in the training loop
        self._every = every
        self._pid = os.getpid()
        self._reader = PeriodicExportingMetricReader(exporter, export_interval_millis=math.inf)
        self._provider = MeterProvider([self._reader], resource=_resource(), shutdown_on_exit=False)
        meter = self._provider.get_meter("cuptiprof", __version__)
        for metric in METRICS:
            self._add_instrument(meter, metric)
        self._is_over = False
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="cuptiprof-otlp", daemon=True)
        self._thread.start()
        before_exit(self)

    def end(self) -> None:
        """The last numbers are sent, as far as somebody takes them within a few seconds."""
        if self._pid != os.getpid() or self._is_over:
            return
        self._stopped.set()
        self._thread.join(_PATIENCE)
        self._is_over = True
        with contextlib.suppress(Exception):  # of a provider that took too long
            self._provider.shutdown(timeout_millis=1000)  # whoever still tries gives up
        self._thread.join(_PATIENCE / 3)

    def _add_instrument(self, meter: Any, metric: PublishedMetric) -> None:
        about = {"unit": metric.unit, "description": metric.text}
        if metric.kind == "histogram":
            self._steps = meter.create_histogram(metric.name, **about, explicit_bucket_boundaries_advisory=BOUNDS)
            self._readings.steps.listeners.append(self._ended.append)
        elif metric.kind == "counter":
            meter.create_observable_counter(metric.name, [self._callback(metric.name)], **about)
        else:
            name = f"{metric.name}.info" if metric.kind == "info" else metric.name
            meter.create_observable_gauge(name, [self._callback(metric.name)], **about)

    def _callback(self, name: str) -> Callable[[Any], Iterable[Any]]:
        from opentelemetry.metrics import Observation

        def observe(options: Any) -> Iterable[Any]:
            return [Observation(value, labels) for labels, value in self._now.get(name, ())]

        return observe

    def _run(self) -> None:
        while not self._stopped.wait(self._every):
            self._send()
        self._send()

    def _send(self) -> None:
        while self._ended:
            self._steps.record(self._ended.popleft(), self._readings.labels)
        self._now = self._readings.read()  # once for all instruments
        self._reader.collect()


def _resource() -> Any:
    """Who sends: what the environment says, and where it says nothing, what tells processes apart."""
    from opentelemetry.sdk.resources import Resource

    host, pid = socket.gethostname(), os.getpid()
    ours = {"host.name": host, "process.pid": pid, "service.instance.id": f"{host}:{pid}"}
    theirs = Resource.create({})
    return theirs.merge(Resource({name: value for name, value in ours.items() if name not in theirs.attributes}))
