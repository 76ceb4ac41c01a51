"""How monitoring systems get what a session publishes: a scrape, and a collector of OTLP made of OpenTelemetry's own classes."""

from __future__ import annotations

import http.server
import threading
import urllib.request
from collections.abc import Iterable
from typing import Any

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
    ExportMetricsServiceResponse,
)

Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


def get(url: str, accept: str = "*/*", **headers: str) -> str:
    request = urllib.request.Request(url, headers={"Accept": accept, **headers})
    with urllib.request.urlopen(request, timeout=10) as answer:
        text: str = answer.read().decode()
    return text


def samples_of(families: Iterable[Any]) -> Samples:
    """By name and labels; each once."""
    found: Samples = {}
    for family in families:
        for sample in family.samples:
            key = (sample.name, frozenset(sample.labels.items()))
            assert key not in found
            found[key] = sample.value
    return found


def of(samples: Samples, name: str, label: str) -> dict[str, float]:
    """Label -> value."""
    return {dict(labels)[label]: value for (n, labels), value in samples.items() if n == name}


def one(samples: Samples, name: str) -> float:
    (value,) = [value for (n, _), value in samples.items() if n == name]
    return value


class Collector:
    """What OTLP is sent to, on a thread; keeps requests."""

    def __init__(self, status: int = 200) -> None:
        requests = self.requests = []

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                requests.append((self.path, dict(self.headers), ExportMetricsServiceRequest.FromString(body)))
                answer = ExportMetricsServiceResponse().SerializeToString()
                self.send_response(status)
                self.send_header("Content-Type", "application/x-protobuf")
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *args: Any) -> None: ...

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.endpoint = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=[0.01])

    def __enter__(self) -> Collector:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


def otlp_samples(request: Any) -> Samples:
    """As Prometheus would call them (the specification's rules, written down again here)."""
    units = {"s": "_seconds", "By": "_bytes", "1": "_ratio", "W": "_watts", "Cel": "_celsius", "Hz": "_hertz", "By/s": "_bytes_per_second"}  # fmt: skip
    found: Samples = {}
    (of_resource,) = request.resource_metrics
    (scope,) = of_resource.scope_metrics
    assert scope.scope.name == "cuptiprof"
    for metric in scope.metrics:
        unit = "" if metric.unit.startswith("{") else units.get(metric.unit, "")
        name = metric.name.replace(".", "_") + unit
        kind = metric.WhichOneof("data")
        for point in getattr(metric, kind).data_points:
            labels = {a.key: a.value.string_value for a in point.attributes}
            if kind == "histogram":
                assert metric.histogram.aggregation_temporality == 2
                total = 0
                for bound, count in zip([*point.explicit_bounds, float("inf")], point.bucket_counts, strict=True):
                    total += count
                    le = {"le": "+Inf" if bound == float("inf") else repr(float(bound))}
                    found[f"{name}_bucket", frozenset({**labels, **le}.items())] = total
                found[f"{name}_count", frozenset(labels.items())] = point.count
                found[f"{name}_sum", frozenset(labels.items())] = point.sum
                continue
            suffix = ""
            if kind == "sum":
                assert metric.sum.is_monotonic and metric.sum.aggregation_temporality == 2
                suffix = "_total"
            value = point.as_double if point.WhichOneof("value") == "as_double" else point.as_int
            found[name + suffix, frozenset(labels.items())] = value
    return found
