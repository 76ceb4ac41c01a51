"""Probes of activity records: durations, copies, streams, graphs, order."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from cuptiprof.device.gpu import DEVICE_TO_DEVICE, DEVICE_TO_HOST, HOST_TO_DEVICE
from cuptiprof.verify.kernel_launch import Buffer, KernelLaunch, Values
from cuptiprof.verify.machine import Machine
from cuptiprof.verify.probe import Expected, NotHereError, Probe, Traced

if TYPE_CHECKING:
    from cuptiprof.data.result import Result

_START_NS = 10_000  # a kernel's record covers its launch on the GPU too, some microseconds
_PEER = 10  # CUPTI_ACTIVITY_MEMCPY_KIND_PTOP
_SIZES = (4, 4096, 1 << 20, 64 << 20)


def _spin(ns: int) -> KernelLaunch:
    return KernelLaunch("probe_spin", 1, 32, (ns,), lasts=ns)


def _duration(machine: Machine) -> Traced:
    waits = (100_000, 1_000_000, 10_000_000)

    def work(m: Machine) -> None:
        for ns in waits:
            m.launch(_spin(ns))

    def measure(result: Result) -> Values:
        k = result.kernels
        return {f"duration of kernel {i + 1}": float(k["end"][i] - k["start"][i]) for i in range(len(k))}

    expected = tuple(
        Expected(f"duration of kernel {i + 1}", ns, f"it waits {ns} ns by the GPU's clock", 0.01, _START_NS)
        for i, ns in enumerate(waits)
    )
    return Traced(work, measure, expected)


def _copies(machine: Machine) -> Traced:
    kinds = {"HtoD": HOST_TO_DEVICE, "DtoH": DEVICE_TO_HOST, "DtoD": DEVICE_TO_DEVICE}

    def work(m: Machine) -> None:
        for kind in kinds.values():
            for size in _SIZES:
                m.gpu.copy(kind, size)

    def measure(result: Result) -> Values:
        c = result.memcpys
        values = {}
        for name, kind in kinds.items():
            mine = c["copy_kind"] == kind
            values[f"{name} copies"] = float(np.sum(mine))
            values[f"{name} bytes"] = float(np.sum(c["bytes"][mine]))
            values[f"{name} largest"] = float(np.max(c["bytes"][mine], initial=0))
        return values

    expected = []
    for name in kinds:
        expected += [
            Expected(f"{name} copies", len(_SIZES), "one of each size"),
            Expected(f"{name} bytes", sum(_SIZES), "the sizes together"),
            Expected(f"{name} largest", max(_SIZES), "the largest size"),
        ]
    return Traced(work, measure, tuple(expected))


def _sets(machine: Machine) -> Traced:
    sets = [(0xA5, 1, size) for size in _SIZES] + [(0xDEADBEEF, 4, size // 4) for size in _SIZES]

    def work(m: Machine) -> None:
        for value, width, count in sets:
            m.gpu.set(value, count, width=width)

    def measure(result: Result) -> Values:
        s = result.memsets
        return {
            "sets": float(len(s)),
            "bytes set": float(np.sum(s["bytes"])),
            "sets of 8 bits": float(np.sum(s["value"] == sets[0][0])),
            "sets of 32 bits": float(np.sum(s["value"] == sets[-1][0])),
        }

    return Traced(
        work,
        measure,
        (
            Expected("sets", len(sets), "two widths of each size"),
            Expected("bytes set", sum(w * n for _, w, n in sets), "the sizes together"),
            Expected("sets of 8 bits", len(_SIZES), "their value is in the record"),
            Expected("sets of 32 bits", len(_SIZES), "their value is in the record"),
        ),
    )


def _streams(machine: Machine) -> Traced:
    count, ns = 8, 5_000_000

    def work(m: Machine) -> None:
        for stream in [m.gpu.stream() for _ in range(count)]:
            m.launch(_spin(ns), stream)

    def measure(result: Result) -> Values:
        k = result.kernels
        span = float(k["end"].max() - k["start"].min()) if len(k) else math.nan
        return {
            "streams": float(len(set(k["stream"]))),
            "kernels": float(len(k)),
            "span over one kernel": span / ns,
        }

    return Traced(
        work,
        measure,
        (
            Expected("streams", count, "each kernel in a stream of its own"),
            Expected("kernels", count, "one each"),
            Expected("span over one kernel", 1.0, f"{count} kernels of one block wait at the same time", margin=0.25),
        ),
    )


def _graph(machine: Machine) -> Traced:
    nodes, runs = 20, 50
    launch = KernelLaunch("probe_count", 1, 32, (Buffer(4),))

    def work(m: Machine) -> None:
        m.prepare(launch)

        def body(stream: int) -> None:
            for _ in range(nodes):
                m.launch(launch, stream)

        graph = m.gpu.graph(body)
        for _ in range(runs):
            m.gpu.run_graph(graph)

    def measure(result: Result) -> Values:
        k = result.kernels
        return {
            "kernels": float(len(k)),
            "graph nodes": float(len(set(k["graph_node_id"]))),
            "graphs": float(len(set(k["graph_id"]))),
            "graph launches": float(len(set(k["correlation_id"]))),
            "fewest runs of a node": float(
                np.unique(k["graph_node_id"], return_counts=True)[1].min(initial=nodes * runs)
            ),
        }

    return Traced(
        work,
        measure,
        (
            Expected("kernels", nodes * runs, f"{nodes} nodes, {runs} times"),
            Expected("graph nodes", nodes, "each has its own ID"),
            Expected("graphs", 1, "one"),
            Expected("graph launches", runs, "each has its own correlation ID"),
            Expected("fewest runs of a node", runs, "each node runs every time"),
        ),
    )


def _dependent(machine: Machine) -> Traced:
    count, ns = 10, 200_000

    def work(m: Machine) -> None:
        streams = [m.gpu.stream(), m.gpu.stream()]
        for i in range(count):
            m.launch(_spin(ns), streams[i % 2])
            m.gpu.order(streams[i % 2], streams[(i + 1) % 2])

    def measure(result: Result) -> Values:
        k = result.kernels
        order = np.argsort(k["correlation_id"])
        start, end = k["start"][order], k["end"][order]
        return {
            "kernels": float(len(k)),
            "kernels begun too early": float(np.sum(start[1:] < end[:-1])),
            "kernels launched out of order": float(np.sum(np.diff(start) < 0)),
        }

    return Traced(
        work,
        measure,
        (
            Expected("kernels", count, "one a launch"),
            Expected("kernels begun too early", 0, "each waits for the one before, in the other stream"),
            Expected("kernels launched out of order", 0, "they run in order of launch"),
        ),
    )


def _peer(machine: Machine) -> Traced:
    if machine.facts.devices < 2:
        raise NotHereError("it needs two GPUs")
    size = 1 << 20

    def measure(result: Result) -> Values:
        c = result.memcpys
        mine = (c["is_peer"] != 0) | (c["copy_kind"] == _PEER)
        return {"peer copies": float(np.sum(mine)), "peer bytes": float(np.sum(c["bytes"][mine]))}

    return Traced(
        lambda m: m.gpu.copy_peer(size),
        measure,
        (Expected("peer copies", 1, "one"), Expected("peer bytes", size, "its size")),
    )


def probes() -> Iterator[Probe]:
    """All probes of this subject."""
    subject = "activity"
    yield Probe("duration", subject, "kernels that wait a known time", _duration)
    yield Probe("copies", subject, "copies of each direction and size", _copies)
    yield Probe("memsets", subject, "sets of both widths and each size", _sets)
    yield Probe("streams", subject, "kernels that wait beside each other", _streams)
    yield Probe("graph", subject, "a graph of known nodes, run a known number of times", _graph)
    yield Probe("dependent", subject, "kernels that wait for each other across streams", _dependent)
    yield Probe("peer-copies", subject, "a copy between two GPUs", _peer)
