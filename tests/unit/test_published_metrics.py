"""What a session publishes: scraped from our server by Prometheus's own parsers, sent by OTLP to a collector made of OpenTelemetry's own classes,
and equal to what the result holds."""

from __future__ import annotations

import os
import re
import socket
import threading
import time
import urllib.error
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import pytest
from monitoring_systems import Collector, get, of, one, otlp_samples, samples_of
from opentelemetry.sdk.metrics.export import ConsoleMetricExporter
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as read_openmetrics
from prometheus_client.parser import text_string_to_metric_families as read_text
from watched_programs import until

import cuptiprof
from cuptiprof.errors import SessionError
from cuptiprof.publish.label_text import LONGEST, kernel_label
from cuptiprof.publish.open_telemetry import OpenTelemetry
from cuptiprof.publish.prometheus import Prometheus, SessionCollector
from cuptiprof.publish.published_metrics import METRICS, OF_THE_SYSTEM
from cuptiprof.publish.publisher import Publisher
from cuptiprof.publish.session_readings import MOST_NAMES, ROOM, SessionReadings
from cuptiprof.publish.step_times import BOUNDS, StepTimes
from cuptiprof.session.visible_readings import VisibleReadings
from cuptiprof.sim.sim_device import Op, SimDevice

HOSTILE = [
    'a"quoted',
    "back\\slash",
    "two\nlines",
    'all\\"\n}{=,# EOF\n# TYPE x counter\n',
    "\x1b[31mred",
    "\u202etfel",
    "\udcff\udcfe",
]
LAUNCHED = [3 + 7 * 23 + len(HOSTILE) + 6, 21, 14]


OF_NVML = {metric.prometheus_name for metric in METRICS if metric.name in {name for name, _ in OF_THE_SYSTEM.values()}}


class Kept(Publisher):
    """Reads when the session is over, as a publisher may."""

    def open(self, readings: SessionReadings) -> None:
        self.readings = readings

    def seen(self, *metrics: str) -> list[float]:
        """Sums."""
        now = self.readings.read()
        return [sum(reading.value for reading in now[metric]) for metric in metrics]

    def close(self) -> None:
        self.last = self.readings.read()


@dataclass
class Published:
    result: cuptiprof.Result
    text: str
    openmetrics: str
    request: Any
    headers: dict[str, str]
    path: str
    kept: Kept
    url: str


@pytest.fixture(scope="module")
def published() -> Iterator[Published]:
    """One session, published every way; scraped while it is paused, when all of it has come."""
    sim, kept, server = SimDevice(), Kept(), Prometheus(port=0)
    with pytest.MonkeyPatch.context() as patch, Collector() as collector:
        patch.setenv("OTEL_SERVICE_NAME", "my trainer")
        patch.setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment=night,host.name=said")
        patch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.endpoint)
        patch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-tenant=seven")
        for name in ("RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID"):
            patch.delenv(name, raising=False)
        with cuptiprof.profile(
            device="sim",
            publish=[server, OpenTelemetry(), kept],
            activities=["kernel", "memcpy", "memset", "memory"],
            system="20ms",
        ) as prof:
            sim.launch("outside", count=3, duration_ns=7)
            for i in range(7):
                with cuptiprof.region("train"):
                    sim.launch("gemm", count=20, duration_ns=70_001)
                    with cuptiprof.region('f"w\nd'):
                        sim.launch("_Z4gradPf", count=3, duration_ns=333, stream=1 + i % 2)
                sim.run(sim.ops(3, Op.MEMCPY, bytes=1000, copy_kind=1, duration_ns=101))
                sim.run(sim.ops(2, Op.MEMSET, bytes=64, duration_ns=11))
                prof.step()
            for name in HOSTILE:
                sim.launch(name, count=1, duration_ns=5)
            for long in ("x" * 5_000 + "1", "x" * 5_000 + "2", "y" * 65_000):
                sim.launch(long, count=2, duration_ns=5)
            prof.pause()
            until(lambda: kept.seen("cuptiprof.kernels", "cuptiprof.copies", "cuptiprof.sets") == LAUNCHED)
            until(
                lambda: all(
                    kept.readings.read()[f"cuptiprof.gpu.{name}"] for name in ("power", "sm.clock", "temperature")
                )
            )
            url = server.url
            text = get(url)
            openmetrics = get(url, "application/openmetrics-text; version=1.0.0")
    ((path, headers, request),) = collector.requests
    yield Published(prof.result(), text, openmetrics, request, headers, path, kept, url)


def test_prometheus_s_parser_reads_what_the_result_holds(published: Published) -> None:
    found, result = samples_of(read_text(published.text)), published.result
    assert not any(result.losses.values())
    assert one(found, "cuptiprof_launches_total") == result.metadata["launches"]["launches"]
    kernels = result.kernels
    labels = [kernel_label(name) for name in kernels["name"]]
    counts = of(found, "cuptiprof_kernels_total", "kernel")
    times = of(found, "cuptiprof_kernel_time_seconds_total", "kernel")
    assert counts.pop("(other names)") == 0 and times.pop("(other names)") == 0
    assert counts == {name: labels.count(name) for name in set(labels)} and counts["grad(float*)"] == 21
    ns = (kernels["end"] - kernels["start"]).tolist()
    assert times == {name: sum(t for n, t in zip(labels, ns, strict=True) if n == name) / 1e9 for name in set(labels)}
    regions = of(found, "cuptiprof_region_kernels_total", "region")
    assert regions == {"train": 140, 'train/f"w\\x0ad': 21, "(no region)": 3 + len(HOSTILE) + 6, "(other names)": 0}
    assert sum(of(found, "cuptiprof_region_time_seconds_total", "region").values()) == pytest.approx(sum(ns) / 1e9)
    copies = result.memcpys
    assert of(found, "cuptiprof_copies_total", "direction") == {"HtoD": len(copies)} == {"HtoD": 21}
    assert of(found, "cuptiprof_copy_size_bytes_total", "direction") == {"HtoD": int(copies["bytes"].sum())}
    assert of(found, "cuptiprof_copy_time_seconds_total", "direction") == {
        "HtoD": int((copies["end"] - copies["start"]).sum()) / 1e9
    }
    assert (one(found, "cuptiprof_sets_total"), one(found, "cuptiprof_set_size_bytes_total")) == (14, 14 * 64)
    assert one(found, "cuptiprof_missed_rows_total") == 0
    assert one(found, "cuptiprof_budget_bytes") == 256e6
    assert 0 < one(found, "cuptiprof_kept_bytes") < 256e6
    assert of(found, "cuptiprof_session_state", "state") == {
        "idle": 0, "armed": 0, "running": 0, "paused": 1, "stopped": 0}  # fmt: skip
    assert 0 < of(found, "cuptiprof_gpu_busy_ratio", "gpu")["0"] <= 1
    assert of(found, "cuptiprof_session_info", "simulated") == {"true": 1}
    assert one(found, "cuptiprof_step_time_seconds_count") == 7
    assert set(of(found, "cuptiprof_losses_total", "loss").values()) == {0}


def test_both_parsers_read_the_same(published: Published) -> None:
    assert published.openmetrics.endswith("# EOF\n")
    plain, open_one = samples_of(read_text(published.text)), samples_of(read_openmetrics(published.openmetrics))
    gauges = {"cuptiprof_kept_bytes", "cuptiprof_gpu_busy_ratio", *OF_NVML}  # of the moment
    assert {k: v for k, v in plain.items() if k[0] not in gauges} == {
        k: v for k, v in open_one.items() if k[0] not in gauges
    }


def test_otlp_says_the_same(published: Published) -> None:
    scraped, sent = samples_of(read_text(published.text)), otlp_samples(published.request)
    of_the_moment = {"cuptiprof_kept_bytes", "cuptiprof_gpu_busy_ratio", "cuptiprof_session_state", *OF_NVML}
    assert {k: v for k, v in sent.items() if k[0] not in of_the_moment} == {
        k: v for k, v in scraped.items() if k[0] not in of_the_moment
    }
    assert (
        of(sent, "cuptiprof_session_state", "state")["stopped"] == 1
    )  # the last numbers are sent when the session is over
    assert published.path == "/v1/metrics" and published.headers["x-tenant"] == "seven"
    (of_resource,) = published.request.resource_metrics
    said = {a.key: a.value.string_value for a in of_resource.resource.attributes}
    assert (
        said["service.name"] == "my trainer"
        and said["deployment.environment"] == "night"
        and said["host.name"] == "said"
    )
    assert said["service.instance.id"]


def test_the_last_readings_are_those_of_the_result(published: Published) -> None:
    last = published.kept.last
    assert sum(reading.value for reading in last["cuptiprof.kernels"]) == len(published.result.kernels)
    (busy,) = last["cuptiprof.gpu.busy.time"]
    tables = [published.result.kernels, published.result.memcpys, published.result.memsets]
    pieces = sorted((s, e) for t in tables for s, e in zip(t["start"].tolist(), t["end"].tolist(), strict=True))
    total, until = 0, 0
    for start, end in pieces:
        total += max(end - max(start, until), 0)
        until = max(until, end)
    assert busy.value == total / 1e9


def test_names_follow_prometheus_s_conventions(published: Published) -> None:
    """What ``promtool check metrics`` asks for, and OpenTelemetry's rules for names."""
    families = {family.name: family for family in read_openmetrics(published.openmetrics)}
    described = {family.name: family for family in SessionCollector(published.kept.readings).describe()}
    assert set(described) == {metric.prometheus_name for metric in METRICS} and set(families) <= set(described)
    assert OF_NVML - set(families) < OF_NVML
    for metric in METRICS:
        family = families.get(metric.prometheus_name, described[metric.prometheus_name])
        assert re.fullmatch(r"cuptiprof(_[a-z]+)+", family.name) and re.fullmatch(r"cuptiprof(\.[a-z]+)+", metric.name)
        assert (
            family.type == metric.kind
            and family.documentation == metric.text
            and metric.text.endswith((".", "1", '"memory"'))
        )
        assert not family.name.endswith(("_total", "_count", "_sum", "_bucket", "_info", "_created"))
        assert not set(family.name.split("_")) & {"ms", "ns", "kb", "mb", "milliseconds", "percent", "gauge", "counter"}
        assert family.unit == metric.prometheus_unit and (not family.unit or family.name.endswith(f"_{family.unit}"))
        for sample in family.samples:
            assert set(sample.labels) - {"le"} == set(metric.labels)
            assert all(value.isprintable() and len(value) <= LONGEST for value in sample.labels.values())
            assert sample.name.endswith("_total") == (metric.kind == "counter")


def test_the_system_s_readings_are_gauges_in_base_units(published: Published) -> None:
    found, samples = samples_of(read_text(published.text)), published.result.system_samples
    for counter, name, factor in (("power", "power_watts", 1), ("sm_clock", "sm_clock_hertz", 1e6), ("temperature", "temperature_celsius", 1)):  # fmt: skip
        ours = of(found, f"cuptiprof_gpu_{name}", "gpu")
        values = samples["value"][(samples["counter"] == counter) & (samples["device"] == 0)]
        assert set(ours) == {"0"} and ours["0"] in (values * factor).tolist()


def test_names_that_are_too_long_stay_apart(published: Published) -> None:
    counts = of(samples_of(read_text(published.text)), "cuptiprof_kernels_total", "kernel")
    long = [name for name in counts if name.startswith("xxx")]
    assert len(long) == 2 and all(counts[name] == 2 and len(name) == LONGEST for name in long)


def test_nothing_is_left(published: Published) -> None:
    assert not [
        t.name for t in threading.enumerate() if t.name.startswith(("cuptiprof-prom", "cuptiprof-otlp", "Otel"))
    ]
    with pytest.raises(OSError):
        get(published.url)
    port = int(published.url.split(":")[2].split("/")[0])
    with socket.socket() as again:
        again.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # connections that were ended are still known
        again.bind(("127.0.0.1", port))
        again.listen()


def test_counters_never_go_back_and_names_have_a_limit(sim: SimDevice) -> None:
    """More names than there is room for, the order of which changes; a look after each batch."""
    before: dict[str, float] = {}
    registry = CollectorRegistry()
    launched = 0
    with cuptiprof.profile(device="sim", publish=Prometheus(registry=registry), activities=["kernel"]):
        for look in range(5):
            for i in range(60):
                sim.launch(f"k{look * 40 + i}", count=1 + look, duration_ns=100 + look * 100)
                launched += 1 + look
            while sum(before.values()) < launched:
                time.sleep(0.05)
                text = generate_latest(registry).decode()
                now = of(samples_of(read_text(text)), "cuptiprof_kernels_total", "kernel")
                assert all(now[name] >= count for name, count in before.items())
                before = now
            assert sum(before.values()) == launched
    assert MOST_NAMES < len(before) <= ROOM + 1 and before["(other names)"] > 0
    assert not list(registry.collect())  # the session is over: its collector is gone


def test_a_kernel_may_be_called_as_the_rest_is(sim: SimDevice) -> None:
    kept = Kept()
    with cuptiprof.profile(device="sim", publish=kept):
        sim.launch("(other names)", count=4)
        sim.launch("", count=2)
    assert {r.labels["kernel"]: r.value for r in kept.last["cuptiprof.kernels"]} == {"(other names)": 4, "": 2}


def test_a_rank_listens_beside_others_and_says_who_it_is(sim: SimDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    for name, value in (("RANK", "5"), ("WORLD_SIZE", "8"), ("LOCAL_RANK", "1"), ("LOCAL_WORLD_SIZE", "4")):
        monkeypatch.setenv(name, value)
    server = Prometheus(port=port - 1)
    with cuptiprof.profile(device="sim", publish=server) as prof:
        sim.launch("k")
        prof.step()
        assert server.url == f"http://127.0.0.1:{port}/metrics"
        found = samples_of(read_text(get(server.url)))
        assert all(("rank", "5") in labels and ("host", socket.gethostname()) in labels for _, labels in found)
    with (
        socket.create_server(("127.0.0.1", port)),
        pytest.raises(SessionError, match=f"cannot listen at 127.0.0.1:{port}"),
    ):
        cuptiprof.profile(device="sim", publish=server).start()
    with cuptiprof.profile(device="sim", publish=server):  # a start that failed left nothing; a second one works
        assert get(server.url)


def test_only_this_machine_unless_asked(sim: SimDevice) -> None:
    server = Prometheus(port=0)
    with cuptiprof.profile(device="sim", publish=server):
        assert server.url.startswith("http://127.0.0.1:")
        for host in ("localhost", "127.0.0.1:1234", "[::1]:9"):
            assert get(server.url, Host=host)
        for host in ("evil.example", "127.0.0.1.evil.example:80", ""):
            with pytest.raises(urllib.error.HTTPError, match="403"):
                get(server.url, Host=host)
    wide = Prometheus(port=0, address="0.0.0.0")
    with cuptiprof.profile(device="sim", publish=wide):
        assert get(wide.url, Host="node7.example")


def test_who_does_not_ask_or_does_not_listen_is_not_waited_for(sim: SimDevice) -> None:
    server = Prometheus(port=0)
    prof = cuptiprof.profile(device="sim", publish=server).start()
    where = ("127.0.0.1", int(server.url.split(":")[2].split("/")[0]))
    silent = [socket.create_connection(where) for _ in range(12)]  # more than are served at once
    silent[0].sendall(b"GET /metrics HT")
    began = time.monotonic()
    prof.stop()
    assert time.monotonic() - began < 5 and not any("process_request_thread" in t.name for t in threading.enumerate())
    for connection in silent:
        connection.close()


def test_without_threads_it_goes_on_later(sim: SimDevice) -> None:
    """Requests that cannot be served are let go; more of them than are served at once do not use anything up."""
    server = Prometheus(port=0)
    with cuptiprof.profile(device="sim", publish=server), pytest.MonkeyPatch.context() as patch:

        def fails(self: threading.Thread) -> None:
            raise RuntimeError("can't start new thread")

        patch.setattr(threading.Thread, "start", fails)
        for _ in range(20):
            with pytest.raises(OSError):
                get(server.url)
        patch.undo()
        assert get(server.url)


def test_a_fork_leaves_the_server_to_its_parent(sim: SimDevice) -> None:
    server = Prometheus(port=0)
    with (
        Collector() as collector,
        cuptiprof.profile(device="sim", publish=[server, OpenTelemetry(collector.endpoint)]) as prof,
    ):
        sim.launch("k", count=3)
        until(lambda: 'kernels_total{kernel="k"} 3.0' in get(server.url))
        pid = os.fork()
        if pid == 0:
            mine = {t.name for t in threading.enumerate()} == {"MainThread"}
            prof.__exit__(None, None, None)
            os._exit(0 if mine else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        assert 'cuptiprof_kernels_total{kernel="k"} 3.0' in get(server.url)
    assert len(collector.requests) == 1  # the child sent nothing


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda: cuptiprof.profile(device="sim", publish="prometheus"), "is no publisher"),
        (lambda: cuptiprof.profile(device="sim", publish=[Prometheus(0), 3]), "is no publisher"),
        (lambda: Prometheus(port=70000), "65535"),
        (lambda: OpenTelemetry(every=0), "more than 0"),
        (lambda: OpenTelemetry("http://x", exporter=ConsoleMetricExporter), "its own endpoint"),
        (lambda: cuptiprof.profile(device="sim", publish=OpenTelemetry("localhost:4317")).start(), "no endpoint"),
        (lambda: cuptiprof.profile(device="sim", publish=Prometheus(0, address="192.0.2.1")).start(), "cannot listen"),
    ],
)  # fmt: skip
def test_what_cannot_be(make: Callable[[], object], why: str) -> None:
    with pytest.raises(SessionError, match=re.escape(why)):
        make()
    with cuptiprof.profile(device="sim"):  # nothing stayed on
        pass


def test_a_protocol_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
    with pytest.raises(SessionError, match="http/protobuf"):
        cuptiprof.profile(device="sim", publish=OpenTelemetry()).start()


def test_otlp_is_sent_at_the_interval_of_the_environment(sim: SimDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_METRIC_EXPORT_INTERVAL", "20")
    with Collector() as collector, cuptiprof.profile(device="sim", publish=OpenTelemetry(collector.endpoint)):
        sim.launch("k", count=3)
        until(lambda: len(collector.requests) >= 2)
    counts = [of(otlp_samples(request), "cuptiprof_kernels_total", "kernel") for _, _, request in collector.requests]
    assert len(counts) >= 3 and counts[-1]["k"] == 3


def test_a_collector_that_is_not_there_keeps_nobody(sim: SimDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cuptiprof.publish.open_telemetry._PATIENCE", 0.3)
    with socket.socket() as taken:  # nobody listens there
        taken.bind(("127.0.0.1", 0))
        publish = OpenTelemetry(f"http://127.0.0.1:{taken.getsockname()[1]}")
        with cuptiprof.profile(device="sim", publish=publish) as prof:
            sim.launch("k", count=3)
        assert len(prof.result().kernels) == 3
    until(lambda: not any(t.name == "cuptiprof-otlp" for t in threading.enumerate()))


def test_gpus_of_the_system_are_called_as_the_program_calls_them() -> None:
    """With CUDA_VISIBLE_DEVICES=2,0 of three; before CUDA is used nobody knows."""

    class Sampler:
        def latest(self) -> list[tuple[int, str, float]]:
            return [(0, "power", 10.0), (1, "power", 11.0), (2, "power", 12.0), (-1, "resident", 1.0)]

        def uuids(self) -> dict[int, str]:
            return {0: "aa", 1: "bb", 2: "cc"}

    class Device:
        simulated = False
        known: ClassVar[dict[str, Any]] = {}

        def metadata(self) -> dict[str, Any]:
            return self.known

    readings = VisibleReadings(Sampler(), Device())  # type: ignore[arg-type]
    host = (-1, "resident", 1.0)
    assert readings() == [host]
    Device.known = {"gpus": [{"ordinal": 0, "uuid": "cc"}, {"ordinal": 1, "uuid": "aa"}]}
    assert readings() == [(1, "power", 10.0), (0, "power", 12.0), host]


def test_the_recorder_publishes_its_steps(sim: SimDevice, tmp_path: Any) -> None:
    kept = Kept()
    with cuptiprof.recorder(device="sim", folder=tmp_path, publish=kept) as recorder:
        for _ in range(4):
            sim.launch("k")
            recorder.step()
    assert kept.readings.steps.taken().counts[-1] == 4


def test_steps_on_a_bound_are_below_it() -> None:
    steps, heard = StepTimes(), []
    steps.listeners.append(heard.append)
    for ns in (1_000_000, 1_000_001, 10**15):
        steps.add(ns)
    counts, seconds = steps.taken()
    assert counts[:2] == (1, 2) and counts[-2:] == (2, 3) and len(counts) == len(BOUNDS) + 1
    assert seconds == sum(heard) == 0.001 + 0.001000001 + 1e6
