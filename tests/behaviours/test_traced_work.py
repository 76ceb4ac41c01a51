"""Kernels, copies, sets, allocations, graphs and streams: what was given to the GPU is what the tables show."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from gpu import ScenarioGpu
from scenarios import collected, launched

import cuptiprof
from cuptiprof.device.gpu import DEVICE_TO_DEVICE, DEVICE_TO_HOST, HOST_TO_DEVICE

pytest_plugins = ["behaviour_fixtures"]


def test_kernels_carry_what_was_launched(gpu: ScenarioGpu) -> None:
    gpu.prepare("_Z3addPf")
    stream = gpu.stream()
    r = collected(
        gpu,
        lambda: gpu.launch("_Z3addPf", (2, 3, 4), (32, 2, 1), count=3, shared=512, stream=stream, duration_ns=5000),
    )
    assert len(r.kernels) == 3 and not r.losses
    row = r.kernels.row(0)
    assert row["name"] == "_Z3addPf"
    shape = ("grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z", "dynamic_shared_memory")
    assert [int(r.kernels[c][0]) for c in shape] == [2, 3, 4, 32, 2, 1, 512]
    assert row["thread"] == threading.get_native_id()
    durations = r.kernels["end"] - r.kernels["start"]
    assert (durations == 5000).all() if gpu.exact_times else (durations >= 4000).all()
    # One stream runs one kernel after another.
    kernels = r.kernels.sorted_by("correlation_id")
    assert (kernels["start"][1:] >= kernels["end"][:-1]).all()
    assert r.metadata["launches"]["launches"] == 3
    assert r.simulated == gpu.simulated


def test_kernel_times_lie_on_the_run_clock(gpu: ScenarioGpu) -> None:
    def body() -> None:
        with cuptiprof.region("all"):
            gpu.launch("k", duration_ns=100_000)
            gpu.synchronize()

    gpu.prepare("k")
    r = collected(gpu, body)
    region = r.regions.row(0)
    assert region["start"] <= int(r.kernels["start"][0]) < int(r.kernels["end"][0]) <= region["end"]


@pytest.mark.parametrize("duration", [20_000, 200_000, 2_000_000])
def test_a_kernel_lasts_as_long_as_it_is_told(gpu: ScenarioGpu, duration: int) -> None:
    gpu.prepare("spin")
    r = collected(gpu, lambda: gpu.launch("spin", count=5, duration_ns=duration))
    times = r.kernels["end"] - r.kernels["start"]
    if gpu.exact_times:
        assert (times == duration).all()
    else:  # the clock that the kernel reads ticks every microsecond on some chips; starting and ending takes a few
        assert (times > duration - 2_000).all() and np.median(times) < duration * 1.02 + 10_000


def test_streams_have_numbers_of_their_own_and_events_order_them(gpu: ScenarioGpu) -> None:
    gpu.prepare("first", "then")
    one, two = gpu.stream(), gpu.stream()

    def body() -> None:
        gpu.launch("first", stream=one, duration_ns=300_000)
        gpu.order(one, two)
        gpu.launch("then", stream=two, duration_ns=10_000)

    r = collected(gpu, body)
    rows = {row["name"]: row for row in r.kernels.rows()}
    assert rows["first"]["stream"] != rows["then"]["stream"]
    assert rows["then"]["start"] >= rows["first"]["end"]


def test_copies_and_sets(gpu: ScenarioGpu) -> None:
    side = gpu.stream()

    def body() -> None:
        gpu.copy(HOST_TO_DEVICE, 1000)
        gpu.copy(DEVICE_TO_HOST, 2000)
        gpu.copy(DEVICE_TO_DEVICE, 3000, side)
        gpu.set(7, 64)

    r = collected(gpu, body, activities=["memcpy", "memset"])
    copies = r.memcpys.sorted_by("correlation_id")
    assert list(copies["bytes"]) == [1000, 2000, 3000]
    assert list(copies["copy_kind"]) == [1, 2, 8]
    assert list(copies["is_async"]) == [1, 1, 1] and list(copies["is_peer"]) == [0, 0, 0]
    assert copies["stream"][2] != copies["stream"][0] == copies["stream"][1]
    assert (int(r.memsets["bytes"][0]), int(r.memsets["value"][0])) == (64, 7)
    assert len(r.kernels) == 0 and not r.losses


def test_allocations_waits_and_events(gpu: ScenarioGpu) -> None:
    one, two = gpu.stream(), gpu.stream()
    addresses: list[int] = []

    def body() -> None:
        addresses.append(gpu.allocate(4096))
        gpu.order(one, two)
        gpu.synchronize()
        gpu.free(addresses[0])

    r = collected(gpu, body, activities=["sync", "event", "memory"])
    mine = r.memory.where(r.memory["address"] == addresses[0])
    assert list(mine["operation"]) == [1, 2]
    assert int(mine["bytes"][0]) == 4096
    assert len(r.cuda_events) == 1
    assert {2, 4} <= set(r.synchronizations["type"].tolist())  # a stream waits for an event; the host for the context


def test_calls_are_in_a_table_of_their_own(gpu: ScenarioGpu) -> None:
    gpu.prepare("k")
    r = collected(gpu, lambda: gpu.launch("k", count=3), activities=["kernel", "runtime", "driver"])
    calls = r.api_calls
    ours = calls.where(np.isin(calls["name"], ["cudaLaunchKernel", "cuLaunchKernel"]))
    assert sorted(ours["correlation_id"]) == sorted(r.kernels["correlation_id"])
    assert (ours["end"] >= ours["start"]).all()
    assert set(ours["thread"]) == {threading.get_native_id()}


def test_nodes_of_a_graph_share_a_correlation_id(gpu: ScenarioGpu) -> None:
    gpu.prepare("node")

    def body() -> None:
        graph = gpu.graph(lambda stream: gpu.launch("node", count=4, stream=stream))
        with cuptiprof.region("replay"):
            gpu.run_graph(graph)
            gpu.run_graph(graph)

    r = collected(gpu, body)
    assert launched(r) == ["node"] * 8  # captured launches do not run
    assert r.metadata["launches"]["launches"] == 0
    assert len(set(r.kernels["correlation_id"])) == 2
    assert len(set(r.kernels["graph_node_id"])) == 4
    assert len(set(r.kernels["graph_id"])) == 1 and r.kernels["graph_id"][0] != 0
    assert set(r.kernels["region"]) == {"replay"}
    assert not r.losses


def test_graphs_as_wholes_replace_their_nodes(gpu: ScenarioGpu) -> None:
    gpu.prepare("node", "beside")

    def body() -> None:
        graph = gpu.graph(lambda stream: gpu.launch("node", count=3, stream=stream))
        gpu.run_graph(graph)
        gpu.launch("beside")

    r = collected(gpu, body, activities=["kernel", "graph"])
    assert launched(r) == ["beside"]
    assert len(r.graph_launches) == 1 and r.graph_launches["graph_id"][0] != 0


def test_a_launch_that_the_driver_refuses_has_no_record_and_is_no_loss(gpu: ScenarioGpu) -> None:
    gpu.prepare("good", "bad")

    def body() -> None:
        gpu.launch("good")
        gpu.launch_refused("bad")
        gpu.launch("good")

    r = collected(gpu, body)
    assert launched(r) == ["good", "good"]
    assert not r.losses, r.losses.line()


def test_cupti_s_own_overhead(gpu: ScenarioGpu) -> None:
    gpu.prepare("k")
    r = collected(gpu, lambda: gpu.launch("k", count=1000), activities=["kernel", "overhead"], buffer_size="64 KB")
    assert len(r.overhead) > 1
    # CUpti_ActivityOverheadKind: compiler 1; flush, resources, instrumentation, modules, functions, command buffer, request.
    known = {1, *(i << 16 for i in range(1, 8))}
    assert set(r.overhead["kind"].tolist()) <= ({1 << 16, 7 << 16} if gpu.simulated else known)
    assert len(r.kernels) == 1000
