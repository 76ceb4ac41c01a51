"""Work of CUDA graphs is given what was open where its node was captured, beside what is open at the launch."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from graph_programs import STREAM, GraphProgram, work_of
from hypothesis import given, settings
from hypothesis import strategies as st
from own_time import takes_less_than

import cuptiprof
from cuptiprof import _core
from cuptiprof.data.result import Result
from cuptiprof.device.devices import Device
from cuptiprof.sim.sim_device import Fault, Flag, Op, SimDevice, library_path


@pytest.fixture(autouse=True)
def real_clock(sim: SimDevice) -> None:
    """The machine of ``device="sim"``: what was made before a session is there in it."""
    sim.reset()


def capture(sim: SimDevice, graph: int, *kernels: str) -> None:
    """Each kernel in a region of its own name, all in region ``capture``."""
    with cuptiprof.region("capture"):
        sim.call(Op.GRAPH_BEGIN_CAPTURE, graph_id=graph, stream=STREAM)
        for kernel in kernels:
            with cuptiprof.region(kernel):
                sim.launch(kernel, stream=STREAM)
        sim.call(Op.GRAPH_END_CAPTURE, graph_id=graph, stream=STREAM)


def replay(sim: SimDevice, executable: int, count: int = 1) -> None:
    with cuptiprof.region("replay"):
        sim.run(sim.ops(count, Op.GRAPH_LAUNCH, graph_id=executable, stream=3))


def on(sim: SimDevice, version: int) -> Device:
    sim.reset(cupti_version=version)
    return Device("sim", _core.load_cupti(str(library_path()), "test", True))


def of_graphs(result: Result) -> tuple[int, int, int, int]:
    counts = result.metadata["launches"]
    return (
        counts["graph_launches"],
        counts["graph_launches_unknown"],
        counts["graph_work"],
        counts["graph_work_received"],
    )


@settings(max_examples=80, deadline=None)
@given(st.integers(0, 2**32), st.sampled_from([130001, 130400]))
def test_any_program(seed: int, version: int) -> None:
    """Captured in regions, added by hand, cloned, nested, instantiated, updated, destroyed: what the program itself knows."""
    sim = SimDevice()
    with cuptiprof.profile(device=on(sim, version)) as prof:
        program = GraphProgram(sim, seed)
        program.run(60)
    result = prof.result()
    assert work_of(result) == program.expected
    assert not result.losses, result.losses.line()
    work = sum(program.expected.values()) - sum(n for (k, _, _), n in program.expected.items() if k == "plain")
    assert of_graphs(result) == (program.launches, 0, work, work)


def test_copies_and_sets_of_a_graph_know_their_capture_too(sim: SimDevice) -> None:
    with cuptiprof.profile(device="sim") as prof:
        with cuptiprof.region("capture"):
            sim.call(Op.GRAPH_BEGIN_CAPTURE, graph_id=5, stream=STREAM)
            sim.call(Op.MEMSET, bytes=8, stream=STREAM)
            with cuptiprof.region("load"):
                sim.call(Op.MEMCPY, bytes=8, copy_kind=1, stream=STREAM)
                sim.call(Op.MEMCPY_PEER, bytes=8, stream=STREAM)
            sim.call(Op.GRAPH_END_CAPTURE, graph_id=5, stream=STREAM)
        replay(sim, 5)
        sim.call(Op.MEMSET, bytes=8)
    r = prof.result()
    assert list(zip(r.memcpys["region"], r.memcpys["capture_region"], strict=True)) == [("replay", "capture/load")] * 2
    assert list(r.memsets["capture_region"]) == ["capture", ""]
    assert r.memsets["capture_known"].tolist() == [1, 0]
    regions = dict(zip(r.regions["path"], r.regions["instance"], strict=True))
    assert set(r.memcpys["capture_region_instance"]) == {regions["capture/load"]}
    assert of_graphs(r) == (1, 0, 3, 3)


def test_a_hundred_thousand_replays(sim: SimDevice) -> None:
    with cuptiprof.profile(device="sim", keep="first", budget="256 MB") as prof:
        capture(sim, 5, "a", "b")
        sim.call(Op.GRAPH_INSTANTIATE, graph_id=5)
        for _ in range(200):
            replay(sim, 5, 500)
            time.sleep(0.001)  # 2 us each, as cudaGraphLaunch takes at least
    r = prof.result()
    assert work_of(r) == {(k, "replay", f"capture/{k}"): 100_000 for k in "ab"}
    assert not r.losses, r.losses.line()
    assert of_graphs(r) == (100_000, 0, 200_000, 200_000)


def test_a_replay_costs_one_event_more_than_a_launch_and_none_a_node(sim: SimDevice) -> None:
    prof = cuptiprof.profile(device="sim").start()
    capture(sim, 5, *(f"k{i}" for i in range(50)))
    sim.call(Op.GRAPH_INSTANTIATE, graph_id=5)
    before = sim.truth()["callbacks"]
    replay(sim, 5, 10)
    assert sim.truth()["callbacks"] - before == 20
    prof.stop()


def test_threads(sim: SimDevice) -> None:
    """Captured in one thread, instantiated in another, launched in a third; each thread's regions are its own."""

    def in_thread(body: object) -> None:
        thread = threading.Thread(target=body)  # type: ignore[arg-type]
        thread.start()
        thread.join(20)

    with cuptiprof.profile(device="sim") as prof:
        in_thread(lambda: capture(sim, 5, "a"))
        in_thread(lambda: sim.call(Op.GRAPH_INSTANTIATE, graph_id=5, value=9))
        in_thread(lambda: replay(sim, 9))
    assert work_of(prof.result()) == {("a", "replay", "capture/a"): 1}


def test_a_graph_older_than_the_session(sim: SimDevice) -> None:
    """Its kernels keep the region of their launch, and say that nobody knows where they were captured."""
    capture(sim, 5, "old")
    capture(sim, 6, "instantiated")
    sim.call(Op.GRAPH_INSTANTIATE, graph_id=6)
    with cuptiprof.profile(device="sim") as prof:
        with cuptiprof.region("made"):
            sim.call(Op.GRAPH_INSTANTIATE, graph_id=5, value=9)
        replay(sim, 9)
        replay(sim, 6, 3)
    r = prof.result()
    assert work_of(r) == {("old", "replay", "?"): 1, ("instantiated", "replay", "?"): 3}
    # How much one launch of a graph does is known from its instantiation on.
    assert of_graphs(r) == (4, 3, 1, 1)
    assert not r.losses, r.losses.line()


def test_an_older_executable_that_is_updated(sim: SimDevice) -> None:
    capture(sim, 5, "old")
    sim.call(Op.GRAPH_INSTANTIATE, graph_id=5, value=9)
    with cuptiprof.profile(device="sim") as prof:
        capture(sim, 6, "new")
        sim.call(Op.GRAPH_EXEC_UPDATE, graph_id=9, value=6)
        replay(sim, 9)
    assert work_of(prof.result()) == {("new", "replay", "capture/new"): 1}


@pytest.mark.parametrize(("version", "site"), [(120600, "?"), (130001, "capture/new"), (130400, "capture/new")])
def test_updated_by_each_cupti(sim: SimDevice, version: int, site: str) -> None:
    """Before 13.0 CUPTI does not say from which nodes an executable graph was updated: then that is not known."""
    with cuptiprof.profile(device=on(sim, version)) as prof:
        capture(sim, 5, "old")
        sim.call(Op.GRAPH_INSTANTIATE, graph_id=5, value=9)
        replay(sim, 9)
        capture(sim, 6, "new")
        sim.call(Op.GRAPH_EXEC_UPDATE, graph_id=9, value=6)
        replay(sim, 9)
    assert work_of(prof.result()) == {("old", "replay", "capture/old"): 1, ("new", "replay", site): 1}


def test_a_library_that_does_not_name_nodes(sim: SimDevice) -> None:
    sim.inject(Fault.FAIL_CALL, "cuptiGetGraphNodeId", 999)
    with cuptiprof.profile(device="sim") as prof:
        capture(sim, 5, "a")
        replay(sim, 5)
    assert work_of(prof.result()) == {("a", "replay", "?"): 1}


def test_work_of_what_is_destroyed_is_known_still(sim: SimDevice) -> None:
    with cuptiprof.profile(device="sim") as prof:
        capture(sim, 5, "a")
        sim.call(Op.GRAPH_INSTANTIATE, graph_id=5, value=9)
        sim.call(Op.GRAPH_DESTROY, graph_id=5)
        replay(sim, 9)
        sim.call(Op.GRAPH_EXEC_DESTROY, graph_id=9)
    assert work_of(prof.result()) == {("a", "replay", "capture/a"): 1}


def test_captured_while_nothing_is_collected(sim: SimDevice) -> None:
    """No region is known then; how much the graph does is."""
    with cuptiprof.profile(device="sim") as prof:
        prof.pause()
        capture(sim, 5, "a")
        sim.call(Op.GRAPH_INSTANTIATE, graph_id=5, value=9)
        prof.resume()
        replay(sim, 9)
    r = prof.result()
    assert work_of(r) == {("a", "replay", "?"): 1}
    assert of_graphs(r) == (1, 0, 1, 1)


def test_captured_in_an_earlier_cycle(sim: SimDevice) -> None:
    """A result of its own each step; the graph is the first one's."""
    results: list[Result] = []
    schedule = cuptiprof.schedule(wait=0, warmup=0, active=1, repeat=2)
    with cuptiprof.profile(device="sim", schedule=schedule, on_ready=lambda p: results.append(p.result())) as prof:
        capture(sim, 5, "a")
        sim.call(Op.GRAPH_INSTANTIATE, graph_id=5, value=9)
        replay(sim, 9)
        prof.step()
        replay(sim, 9)
        prof.step()
    assert [work_of(r) for r in results] == [{("a", "replay", "capture/a"): 1}] * 2


def test_a_launch_that_fails_is_no_launch(sim: SimDevice) -> None:
    with cuptiprof.profile(device="sim") as prof:
        capture(sim, 5, "a")
        replay(sim, 5)
        sim.call(Op.GRAPH_LAUNCH, graph_id=5, stream=3, return_value=1)
    r = prof.result()
    assert of_graphs(r) == (1, 0, 1, 1)
    assert not r.losses, r.losses.line()


def test_work_that_never_came_is_missed(sim: SimDevice) -> None:
    with cuptiprof.profile(device="sim", activities=["kernel", "memset"]) as prof:
        capture(sim, 5, "a", "b")
        replay(sim, 5, 4)
        sim.call(Op.GRAPH_LAUNCH, graph_id=5, stream=3, flags=Flag.NO_RECORD)
    r = prof.result()
    assert r.losses["unreconciled_graph_work"] == 2
    assert r.losses["unreconciled_launches"] == 0
    assert of_graphs(r) == (5, 0, 10, 8)


@pytest.mark.parametrize("activities", [["memset"], ["kernel"], ["memcpy", "memset"]])
def test_only_work_that_is_recorded_is_expected(sim: SimDevice, activities: list[str]) -> None:
    prof = cuptiprof.profile(device="sim", activities=activities).start()
    sim.call(Op.GRAPH_BEGIN_CAPTURE, graph_id=5, stream=STREAM)
    sim.launch("a", stream=STREAM, count=2)
    sim.call(Op.MEMSET, bytes=8, stream=STREAM)
    sim.call(Op.GRAPH_END_CAPTURE, graph_id=5, stream=STREAM)
    replay(sim, 5, 3)
    with takes_less_than(0.8):
        prof.stop()
    work = 3 * (2 * ("kernel" in activities) + ("memset" in activities))
    assert of_graphs(prof.result()) == (3, 0, work, work)
    assert not prof.result().losses


def test_graphs_as_wholes_pay_nothing_for_nodes(sim: SimDevice) -> None:
    def callbacks(activities: list[str]) -> int:
        prof = cuptiprof.profile(device="sim", activities=activities).start()
        before = sim.truth()["callbacks"]
        sim.call(Op.GRAPH_INSTANTIATE, graph_id=5, value=9)
        made = sim.truth()["callbacks"] - before
        prof.stop()
        assert prof.result().metadata["launches"]["graph_launches"] == 0
        return made

    capture(sim, 5, *"abcdefgh")
    assert callbacks(["kernel", "graph"]) - callbacks(["runtime"]) == 0
    assert callbacks(["kernel"]) > 16


def test_nodes_without_room_are_counted_and_their_work_says_so(sim: SimDevice) -> None:
    nodes = 3000  # and as many copies
    with cuptiprof.profile(device="sim", budget="8 MB", activities=["kernel"]) as prof:
        with cuptiprof.region("capture"):
            sim.call(Op.GRAPH_BEGIN_CAPTURE, graph_id=5, stream=STREAM)
            sim.launch("k", stream=STREAM, count=nodes)
            sim.call(Op.GRAPH_END_CAPTURE, graph_id=5, stream=STREAM)
        replay(sim, 5)
    r = prof.result()
    known = int(np.count_nonzero(r.kernels["capture_known"]))
    lost = r.losses["captures_lost"]
    assert len(r.kernels) == nodes and 0 < known < nodes and lost == nodes - known
    assert set(r.kernels["capture_region"]) <= {"", "capture"}
    # Neither is what that graph does counted.
    assert of_graphs(r)[1:3] == (1, 0) and r.losses["unreconciled_graph_work"] == 0


def test_graphs_that_come_and_go_find_room(sim: SimDevice) -> None:
    """Each of more graphs than there is room for at once is known while it lives."""
    rounds, nodes = 30, 1500
    with cuptiprof.profile(device="sim", budget="8 MB", activities=["kernel"]) as prof:
        for i in range(rounds):
            with cuptiprof.region(f"r{i}"):
                sim.call(Op.GRAPH_BEGIN_CAPTURE, graph_id=5, stream=STREAM)
                sim.launch("k", stream=STREAM, count=nodes)
                sim.call(Op.GRAPH_END_CAPTURE, graph_id=5, stream=STREAM)
            sim.call(Op.GRAPH_INSTANTIATE, graph_id=5, value=9)
            sim.call(Op.GRAPH_DESTROY, graph_id=5)
            replay(sim, 9)
            sim.call(Op.GRAPH_EXEC_DESTROY, graph_id=9)
            prof.pause()  # what is gone has been asked for
            prof.resume()
            time.sleep(0.6)
    r = prof.result()
    assert r.losses["captures_lost"] == 0
    assert Counter(r.kernels["capture_region"]) == {f"r{i}": nodes for i in range(rounds)}


def test_what_a_file_and_a_trace_keep(sim: SimDevice, tmp_path: Path) -> None:
    import json

    with cuptiprof.profile(device="sim") as prof:
        capture(sim, 5, "a")
        replay(sim, 5)
    r = prof.result()
    r.save(tmp_path / "run")
    assert work_of(cuptiprof.open(tmp_path / "run")) == work_of(r)
    r.export_chrome_trace(tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    [kernel] = [e for e in events if e.get("cat") == "kernel"]
    assert kernel["args"]["capture region"] == "capture/a"


def test_the_table_of_captures(sim: SimDevice) -> None:
    capture(sim, 6, "old")
    sim.call(Op.GRAPH_INSTANTIATE, graph_id=6)
    with cuptiprof.profile(device="sim") as prof:
        capture(sim, 5, "a", "b", "b")
        replay(sim, 5, 10)
        replay(sim, 6)
        sim.launch("plain", duration_ns=10**9)
    rows = prof.result().report("captures").rows
    kernel = 1000
    assert [(r["region"], r["path"], r["nodes"], r["kernels"], r["gpu_total_ns"], r["gpu_self_ns"]) for r in rows] == [
        ("capture", "capture", 3, 30, 30 * kernel, 0),
        ("b", "capture/b", 2, 20, 20 * kernel, 20 * kernel),
        ("a", "capture/a", 1, 10, 10 * kernel, 10 * kernel),
        ("(capture unknown)", "", 1, 1, kernel, kernel),
    ]
    with cuptiprof.profile(device="sim") as prof:
        sim.launch("plain")
    assert not prof.result().report("captures").rows


def test_the_example() -> None:
    script = Path(__file__).parents[2] / "examples" / "graph_capture.py"
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    rows = [line.split() for line in done.stdout.splitlines()]
    assert [row[-1] for row in rows if row and row[-1] in ("capture", "attention", "mlp")] == [
        "capture",
        "attention",
        "mlp",
    ]
    assert "2000 kernels of 200 launches in {'decode'}, each with the layer that captured it" in done.stdout


def test_the_line_and_the_stack_that_captured_it(sim: SimDevice) -> None:
    """Beside those of the launch; of a node added by hand, those where it was added."""

    def attention() -> None:
        sim.launch("attention", stream=STREAM)

    def by_hand() -> None:
        sim.launch("by_hand", graph_id=5, flags=Flag.ADD_NODE)

    def decode() -> None:
        sim.call(Op.GRAPH_LAUNCH, graph_id=5, stream=3)

    with cuptiprof.profile(device="sim", sources="stacks") as prof:
        sim.call(Op.GRAPH_BEGIN_CAPTURE, graph_id=5, stream=STREAM)
        attention()
        sim.call(Op.GRAPH_END_CAPTURE, graph_id=5, stream=STREAM)
        by_hand()
        decode()
    r = prof.result()
    lines = {
        name: (launched.rpartition(".")[2], captured.rpartition(".")[2])
        for name, launched, captured in zip(
            r.kernels["name"], r.kernels["line"], r.kernels["capture_line"], strict=True
        )
    }
    assert lines == {"attention": ("decode", "attention"), "by_hand": ("decode", "by_hand")}
    stacks = r.python_stacks()
    for name, stack in zip(r.kernels["name"], r.kernels["capture_stack"], strict=True):
        functions = [frame.function.rpartition(".")[2] for frame in stacks.frames(int(stack))]
        assert name in functions and "decode" not in functions


def test_a_graph_launched_into_a_capture_is_a_node_of_that(sim: SimDevice) -> None:
    """It does nothing there, and is no launch; its kernels are where they were captured first."""
    prof = cuptiprof.profile(device="sim").start()
    capture(sim, 5, "inner")
    sim.call(Op.GRAPH_INSTANTIATE, graph_id=5, value=9)
    with cuptiprof.region("outer"):
        sim.call(Op.GRAPH_BEGIN_CAPTURE, graph_id=6, stream=STREAM)
        sim.launch("own", stream=STREAM)
        sim.call(Op.GRAPH_LAUNCH, graph_id=9, stream=STREAM)
        sim.call(Op.GRAPH_END_CAPTURE, graph_id=6, stream=STREAM)
    replay(sim, 6, 2)
    with takes_less_than(0.8):
        prof.stop()
    r = prof.result()
    assert work_of(r) == {("own", "replay", "outer"): 2, ("inner", "replay", "capture/inner"): 2}
    assert of_graphs(r) == (2, 0, 4, 4)
    assert not r.losses, r.losses.line()
