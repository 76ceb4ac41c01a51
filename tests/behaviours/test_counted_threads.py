"""Counters beside other threads and processes: threads that take turns, control calls at any time, fork, Ctrl-C."""

from __future__ import annotations

import os
import signal
import threading
import time
import warnings

import numpy as np
import pytest
from gpu import ScenarioGpu
from scenarios import CHEAP, ONE_PASS, ROTATED, SEVERAL, STRATEGIES, collected, counted, quiet_warnings

import cuptiprof
from cuptiprof.errors import SessionError

pytest_plugins = ["behaviour_fixtures"]
pytestmark = pytest.mark.usefixtures("counting")


def test_threads_take_turns(gpu: ScenarioGpu) -> None:
    gpu.prepare(*(f"of_thread_{n}" for n in range(4)))
    streams = [gpu.stream() for _ in range(4)]

    def work(n: int) -> None:
        for _ in range(250):
            gpu.launch(f"of_thread_{n}", stream=streams[n])

    def body() -> None:
        threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()

    result = collected(gpu, body, metrics=["inst_executed", *CHEAP])
    assert len(result.metric_ranges) + counted(result).get("busy", 0) == 1000
    assert len(result.metric_ranges) > 500
    truth = [gpu.instructions(str(n)) for n in result.metric_ranges["name"]]
    np.testing.assert_allclose(result.counters["inst_executed"], truth, rtol=1e-9)


def test_a_thread_started_inside_a_region_is_counted_with_it(gpu: ScenarioGpu) -> None:
    def body() -> None:
        with cuptiprof.region("bwd"):
            worker = threading.Thread(target=lambda: gpu.launch("k", count=3))
            worker.start()
            worker.join()
        gpu.launch("k")

    result = collected(gpu, body, metrics=CHEAP, regions="bwd")
    assert list(result.metric_ranges["region"]) == ["bwd"] * 3 == list(result.kernels["region"])


def test_control_calls_meet_launches_of_other_threads(gpu: ScenarioGpu) -> None:
    """Pausing, taking and stopping while threads launch: what was selected is measured rightly or counted."""
    gpu.prepare("other", *(f"chosen{n}" for n in range(4)))
    for strategy, metrics in (("replay", SEVERAL), ("replay", ONE_PASS), ("iterate", ROTATED)):
        prof = cuptiprof.profile(device=gpu.device, metrics=metrics, strategy=strategy, kernels="chosen*").start()
        streams = [gpu.stream() for _ in range(4)]
        done = threading.Event()

        def launch(n: int, done: threading.Event = done, streams: list[int] = streams) -> None:
            while not done.is_set():
                gpu.launch(f"chosen{n}", (n + 1, 1, 1), stream=streams[n])
                gpu.launch("other", (77, 1, 1), stream=streams[n])

        threads = [threading.Thread(target=launch, args=(n,)) for n in range(4)]
        for t in threads:
            t.start()
        for _ in range(10):
            time.sleep(0.01)
            prof.pause()
            prof.resume()
        with quiet_warnings():
            result = prof.stop()
        done.set()
        for t in threads:
            t.join()
        assert len(result.metric_ranges) > 0
        names = [str(n) for n in result.metric_ranges["name"]]
        truth = [gpu.instructions(n, (int(n[6:]) + 1, 1, 1)) for n in names]
        np.testing.assert_allclose(result.counters["inst_executed"], truth, rtol=1e-9, err_msg=strategy)


def test_launches_on_their_way_when_a_session_stops_are_not_waited_for_by_the_next(gpu: ScenarioGpu) -> None:
    """Whose return was not seen any more would keep the context taken for good."""
    gpu.prepare("k", "other")
    for _ in range(60 if gpu.simulated else 10):
        done = threading.Event()

        def launch(done: threading.Event = done) -> None:
            while not done.is_set():
                gpu.launch("other", count=1000)  # without the GIL where the device can

        threads = [threading.Thread(target=launch) for _ in range(2)]
        with cuptiprof.profile(device=gpu.device, metrics=["inst_executed"], strategy="replay", kernels="k"):
            for t in threads:
                t.start()
            gpu.launch("k")
            time.sleep(0.002)
        done.set()
        for t in threads:
            t.join()
        result = collected(gpu, lambda: gpu.launch("k"), metrics=["inst_executed"], strategy="replay")
        assert counted(result) == {} and len(result.metric_ranges) == 1


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_fork_in_the_middle(gpu: ScenarioGpu, strategy: str) -> None:
    """The child makes no CUDA call, touches neither the parent's profiler nor its threads, and ends by itself."""
    prof = cuptiprof.profile(device=gpu.device, metrics=ONE_PASS, strategy=strategy).start()
    gpu.launch("warm")
    with cuptiprof.region("r"):
        gpu.launch("k")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # threads and fork
            child = os.fork()
        if child == 0:
            code = 0
            try:
                with cuptiprof.region("child"):
                    pass
                prof.stop()
                code = 4
            except SessionError:
                pass
            finally:
                prof._session = None  # destroys the native session
                os._exit(code)
    deadline = time.monotonic() + 10
    while (done := os.waitpid(child, os.WNOHANG)) == (0, 0) and time.monotonic() < deadline:
        time.sleep(0.01)
    if done == (0, 0):
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        pytest.fail("the child hangs")
    assert os.waitstatus_to_exitcode(done[1]) == 0
    result = prof.stop()
    if strategy == "range":
        np.testing.assert_allclose(result.counters["inst_executed"], [gpu.instructions("k")])
    elif strategy != "sample":
        assert sorted(str(n) for n in result.metric_ranges["name"]) == ["k", "warm"]


def test_control_c_in_the_middle(gpu: ScenarioGpu) -> None:
    prof = cuptiprof.profile(device=gpu.device, metrics=SEVERAL, strategy="replay")
    with pytest.raises(KeyboardInterrupt), prof:
        gpu.launch("k")
        signal.raise_signal(signal.SIGINT)
        gpu.launch("never")
    assert list(prof.result().metric_ranges["name"]) == ["k"] and prof.state == "stopped"


@pytest.mark.parametrize("metrics", [ONE_PASS, SEVERAL])
def test_graphs_launched_beside_counted_kernels_are_not_counted_with_them(gpu: ScenarioGpu, metrics: list[str]) -> None:
    done, made = threading.Event(), threading.Event()
    gpu.prepare("node", "warm", "k")
    side = gpu.stream()

    def launch_graphs() -> None:
        graph = gpu.graph(lambda s: gpu.launch("node", stream=s, count=3))
        made.set()  # nothing is counted while it is being captured
        while not done.is_set():
            gpu.run_graph(graph, side)

    with cuptiprof.profile(device=gpu.device, metrics=metrics, strategy="replay", kernels="k") as prof:
        gpu.launch("warm")
        thread = threading.Thread(target=launch_graphs)
        thread.start()
        assert made.wait(30)
        for _ in range(200):
            gpu.launch("k")
        done.set()
        thread.join()
    result = prof.result()
    assert len(result.metric_ranges) > 100, counted(result)
    assert len(result.metric_ranges) + sum(counted(result).values()) == 200
    np.testing.assert_allclose(result.counters["inst_executed"], gpu.instructions("k"), rtol=1e-9)
