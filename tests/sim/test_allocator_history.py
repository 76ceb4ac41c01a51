"""The history of PyTorch's caching allocator in a session: on a model of that allocator, which the simulated device's operators fill."""

from __future__ import annotations

import json
import pickle
import pickletools
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.cuda import _memory_viz

import cuptiprof
from cuptiprof.analysis.allocators import allocator_memory as memory
from cuptiprof.data.result import Result

pytestmark = pytest.mark.skipif(torch.cuda.is_available(), reason="has CUDA of its own, which is left alone")

ACTIVITIES = ["kernel", "runtime", "allocator"]
MIB = 1 << 20


def collected(body: Any, **arguments: Any) -> Result:
    with cuptiprof.profile(device="sim", activities=ACTIVITIES, **arguments) as prof:
        body()
    return prof.result()


def floats(mib: float) -> torch.Tensor:
    return torch.empty(int(mib * MIB) // 4)


def of(use: memory.MemoryUse, name: str) -> dict[str, int]:
    i = use.names.index(name)
    return {
        key: int(getattr(use, key)[i])
        for key in ("self_increase", "total_increase", "self_allocated", "total_allocated", "allocations", "at_peak")
    }


def test_regions_have_what_they_allocated() -> None:
    def body() -> None:
        with cuptiprof.region("outer"):
            kept = floats(4)
            with cuptiprof.region("inner"):
                floats(2)
                also_kept = floats(1)
                with cuptiprof.region("nothing"):
                    kept.view(-1)
            del kept
        body.kept = also_kept  # type: ignore[attr-defined]

    result = collected(body)
    use = memory.memory_by_region(result, 0)
    assert of(use, "outer/inner") == {
        "self_increase": 1 * MIB, "total_increase": 1 * MIB, "self_allocated": 3 * MIB, "total_allocated": 3 * MIB,
        "allocations": 2, "at_peak": 2 * MIB,
    }  # fmt: skip
    assert of(use, "outer") == {
        "self_increase": 0, "total_increase": 1 * MIB, "self_allocated": 4 * MIB, "total_allocated": 7 * MIB,
        "allocations": 1, "at_peak": 4 * MIB,
    }  # fmt: skip
    assert memory.memory_timeline(result, 0).peak()[0] == 6 * MIB
    assert (result.allocator_events["thread"] == threading.get_native_id()).all()
    text = str(result.report("allocator"))
    assert "most allocated 6.0000MB" in text and "(unattributed)" not in text


def test_levels_are_those_torch_counts() -> None:
    said: dict[str, int] = {}

    def body() -> None:
        rest = [floats(i % 7 + 0.25) for i in range(40)]
        del rest[::3]
        torch.cuda.empty_cache()
        said.update(
            torch.cuda.memory_stats(), allocated=torch.cuda.memory_allocated(), reserved=torch.cuda.memory_reserved()
        )
        body.kept = rest  # type: ignore[attr-defined]

    result = collected(body)
    timeline, left = memory.memory_timeline(result, 0), memory.fragmentation(result, 0)
    assert int(timeline.allocated[-1]) == said["requested_bytes.all.current"] == left.requested
    assert int(timeline.reserved[-1]) == said["reserved"] == left.reserved
    assert timeline.peak()[0] == said["requested_bytes.all.peak"]
    assert int(timeline.reserved.max()) == said["reserved_bytes.all.peak"]
    assert left.allocated == said["allocated"] and left.free == left.reserved - left.allocated
    assert left.allocated > left.requested  # blocks that were not worth cutting
    assert result.metadata["allocator"]["stats"]["0"]["allocated_bytes"] == said["allocated"]


def test_what_was_there_before_the_cycle_counts() -> None:
    kept = []

    def program() -> None:
        with cuptiprof.profile(
            device="sim",
            activities=ACTIVITIES,
            schedule=cuptiprof.schedule(wait=0, warmup=1, active=1, repeat=2),
            on_ready=lambda p: results.append(p.result()),
        ) as prof:
            for _ in range(4):
                kept.append(floats(3))
                prof.step()

    results: list[Result] = []
    program()
    for number, result in enumerate(results):
        timeline = memory.memory_timeline(result, 0)
        assert timeline.before[0] == (1 + 2 * number) * 3 * MIB
        assert timeline.allocated[-1] == (2 + 2 * number) * 3 * MIB
        assert np.count_nonzero(result.allocator_events["action"] == memory.ALLOC) == 1
        assert list(result.allocator_events["step"][:1]) == [2 + 2 * number]
    assert len(results) == 2


def test_out_of_memory_says_who_held_it() -> None:
    def body() -> None:
        torch.cuda.set_per_process_memory_fraction(64 / (80 * 1024))
        try:
            with cuptiprof.region("weights"):
                kept = floats(40)
            with cuptiprof.region("step"), pytest.raises(torch.cuda.OutOfMemoryError):
                floats(100)
        finally:
            torch.cuda.set_per_process_memory_fraction(1.0)
        del kept

    result = collected(body, sources=["lines"])
    (failure,) = memory.out_of_memory(result, 0)
    assert (failure.asked, failure.allocated, failure.reserved) == (100 * MIB, 40 * MIB, 40 * MIB)
    assert failure.device_free == 24 * MIB and failure.earlier == 0
    text = str(result.report("allocator"))
    assert "in step, " in text and f"{Path(__file__).name}:" in text
    assert (
        "100.00MB were asked for, CUDA had 24.000MB; 40.000MB were allocated, 40.000MB reserved: weights 40.000MB."
        in text
    )


def test_what_the_history_had_no_room_for_is_counted() -> None:
    def body() -> None:
        for _ in range(12_000):
            floats(0.001)

    result = collected(body, budget="16 MB")
    entries = result.metadata["allocator"]["max_entries"]
    assert entries == 10_000 == len(result.allocator_events)
    kept = np.isin(result.allocator_events["action"], (memory.ALLOC, memory.FREED)).sum()
    assert result.losses["allocator_overwritten"] == 24_000 - kept
    assert memory.memory_timeline(result, 0).allocated[-1] == 0


def test_a_history_that_is_on_is_the_program_s() -> None:
    record = torch.cuda.memory._record_memory_history
    with cuptiprof.profile(device="sim"):
        pass  # what follows is inside of another session, so that the functions are there
    with cuptiprof.profile(device="sim", activities=ACTIVITIES) as prof:
        kept = floats(1)
        torch.cuda.memory._record_memory_history(max_entries=50)  # the program's own, from here on
        also = floats(2)
        prof._torch._allocator.__exit__()  # type: ignore[union-attr]
        assert torch._C._cuda_isHistoryEnabled()
        torch.cuda.memory._record_memory_history(enabled=None)
        assert not torch._C._cuda_isHistoryEnabled()
    assert torch.cuda.memory._record_memory_history is record
    del kept, also


def test_the_history_is_switched_off_again_and_threads_are_as_they_were() -> None:
    with cuptiprof.profile(device="sim", activities=ACTIVITIES) as prof:
        assert torch._C._cuda_isHistoryEnabled() and torch.cuda.memory._get_memory_metadata()
        prof._torch._allocator.__exit__()  # type: ignore[union-attr]
        assert not torch._C._cuda_isHistoryEnabled() and torch.cuda.memory._get_memory_metadata() == ""
    assert not hasattr(torch._C, "_cuda_isHistoryEnabled")


def test_other_threads_are_not_guessed() -> None:
    def body() -> None:
        with cuptiprof.region("main"):
            thread = threading.Thread(target=lambda: floats(2))
            thread.start()
            thread.join()
            floats(1)

    use = memory.memory_by_region(collected(body), 0)
    assert of(use, memory.UNATTRIBUTED)["self_allocated"] == 2 * MIB and of(use, "main")["self_allocated"] == 1 * MIB


def test_the_program_s_own_marks_stay() -> None:
    def body() -> None:
        torch.cuda.memory._set_memory_metadata("embedding")
        floats(1)
        torch.cuda.memory._set_memory_metadata("")

    result = collected(body)
    assert "embedding" in result.allocator_events["user_metadata"].tolist()


# As torch/utils/viz/MemoryViz.js, which is what opens snapshots: anything else is its "UNKNOWN OPCODE".
VIEWER = {
    "APPEND", "APPENDS", "BINGET", "BININT", "BININT1", "BININT2", "EMPTY_DICT", "EMPTY_LIST", "FRAME", "LONG1", "LONG_BINGET", "MARK",
    "MEMOIZE", "PROTO", "SETITEMS", "SHORT_BINUNICODE", "STOP", "TUPLE2", "NONE", "NEWFALSE", "NEWTRUE", "BINPUT", "LONG_BINPUT",
    "BINFLOAT", "EMPTY_TUPLE", "TUPLE1", "TUPLE3", "BINUNICODE", "SETITEM", "DICT",
}  # fmt: skip


def test_a_snapshot_is_torch_s_own(tmp_path: Path) -> None:
    said: dict[str, Any] = {}

    def body() -> None:
        with cuptiprof.region("kept"):
            said["kept"] = [floats(0.5), floats(3)]
        said["snapshot"] = torch.cuda.memory._snapshot()

    result = collected(body, sources=["stacks"])
    result.export(tmp_path / "s.pickle")
    data = (tmp_path / "s.pickle").read_bytes()
    assert {op.name for op, _, _ in pickletools.genops(data)} <= VIEWER
    ours, theirs = pickle.loads(data), said["snapshot"]
    assert set(ours) == set(theirs)
    assert [set(e) for e in ours["device_traces"][0]][:2] == [{*e, "frames"} for e in theirs["device_traces"][0]][:2]
    for a, b in zip(ours["segments"], theirs["segments"], strict=True):
        assert a.keys() == b.keys() and all(a[key] == b[key] for key in a if key not in ("frames", "blocks"))
        for x, y in zip(a["blocks"], b["blocks"], strict=True):
            assert {**x, "frames": 0} == {**y, "frames": 0}
            assert [(f["filename"], f["line"]) for f in x["frames"]] == [
                (f["filename"], f["line"]) for f in y["frames"]
            ]
    times = [[e["time_us"] for e in s["device_traces"][0]] for s in (ours, theirs)]
    assert max(abs(a - b) for a, b in zip(*times, strict=False)) <= 2  # both clocks were read once more in between
    assert ours["external_annotations"][0] | {"time_us": 0} == {
        "name": "kept", "stage": "START", "device": 0, "time_us": 0,
    }  # fmt: skip
    assert "total_reserved: 22.0MiB" in _memory_viz.segsum(ours) and "Device 0" in _memory_viz.trace(ours)
    assert _memory_viz.trace_plot(ours)

    again = cuptiprof.open(tmp_path / "s.pickle")
    assert (
        again.allocator_blocks.to_pandas()
        .drop(columns="stack")
        .equals(result.allocator_blocks.to_pandas().drop(columns="stack"))
    )
    assert memory.memory_timeline(again, 0).peak()[0] == memory.memory_timeline(result, 0).peak()[0]
    assert "most allocated 3.5000MB" in str(again.report("allocator"))


def test_a_chrome_trace_has_torch_s_memory_events(tmp_path: Path) -> None:
    def body() -> None:
        with cuptiprof.region("kept"):
            body.kept = floats(3)  # type: ignore[attr-defined]
        floats(1)

    result = collected(body)
    result.export(tmp_path / "t.json")
    events = json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    said = [e for e in events if e["name"] == "[memory]"]
    # As torch.profiler's own: an instant event of the thread, bytes with a sign.
    assert {(e["ph"], e["cat"], e["s"], e["tid"]) for e in said} == {
        ("i", "cpu_instant_event", "t", threading.get_native_id())
    }
    keys = ("Bytes", "Total Allocated", "Total Reserved", "Device Id", "Device Type")
    assert [tuple(e["args"][key] for key in keys) for e in said] == [
        (3 * MIB, 3 * MIB, 20 * MIB, 0, 1), (MIB, 4 * MIB, 22 * MIB, 0, 1), (-MIB, 3 * MIB, 22 * MIB, 0, 1),
    ]  # fmt: skip
    region = next(e for e in events if e["name"] == "kept" and e["ph"] == "X")
    assert float(region["ts"]) - 1 <= float(said[0]["ts"]) <= float(region["ts"]) + float(region["dur"])
    levels = [e["args"] for e in events if e["ph"] == "C" and e["name"] == "PyTorch memory"]
    assert levels[1] == {"allocated": 4 * MIB, "reserved": 22 * MIB} and len(levels) == 3


def test_a_saved_run_has_it_all(tmp_path: Path) -> None:
    kept: list[Any] = []
    result = collected(lambda: kept.append(floats(3)), sources=["lines"])
    result.save(tmp_path / "run")
    again = cuptiprof.open(tmp_path / "run")
    for name in ("allocator_events", "allocator_blocks"):
        assert again.tables[name].to_pandas().equals(result.tables[name].to_pandas()) and len(again.tables[name])
    assert str(again.report("allocator")).splitlines()[3:] == str(result.report("allocator")).splitlines()[3:]


def test_a_program_that_imports_torch_late_and_one_that_does_not(tmp_path: Path) -> None:
    script = tmp_path / "late.py"
    script.write_text(
        "import sys, cuptiprof\n"
        "with cuptiprof.profile(device='sim', activities=['kernel', 'allocator']) as p:\n"
        "    if len(sys.argv) > 1:\n"
        "        import torch\n"
        "        x = torch.zeros(1 << 20)\n"
        "r = p.result()\n"
        "print(len(r.allocator_events), r.metadata.get('note'), 'torch' in sys.modules)\n"
    )
    said = [
        subprocess.run([sys.executable, script, *more], capture_output=True, text=True, check=True, timeout=200).stdout
        for more in ([], ["torch"])
    ]
    assert said[0] == "0 no events of the allocator: PyTorch was not imported False\n"
    assert said[1].startswith("3 None True"), said[1]  # its segment, the tensor, the snapshot


def test_operators_have_what_they_allocated() -> None:
    a, b = torch.ones(256, 1024), torch.ones(1024, 512)

    def body() -> None:
        with torch.profiler.record_function("mine"):
            body.kept = a @ b  # type: ignore[attr-defined]
            torch.relu(a)
        floats(2)

    result = collected(body, sources=["operators"])
    use = memory.memory_by_operator(result, 0)
    product, copy = 256 * 512 * 4, 256 * 1024 * 4
    mine = {"self_increase": 0, "total_increase": product + copy, "self_allocated": 0, "total_allocated": product + copy,
            "allocations": 0, "at_peak": 0}  # fmt: skip
    assert of(use, "aten::mm")["self_allocated"] == product == of(use, "aten::matmul")["total_increase"]
    assert of(use, "aten::relu") | {"at_peak": 0} == {
        "self_increase": copy, "total_increase": copy, "self_allocated": copy, "total_allocated": copy, "allocations": 1, "at_peak": 0,
    }  # fmt: skip
    # What a program releases itself is released in the scope it stands in.
    assert of(use, "mine") == {**mine, "self_increase": -copy, "total_increase": product}
    assert of(use, "aten::empty")["self_allocated"] == 2 * MIB
    assert "by operator" in str(result.report("allocator")) and "PythonDispatchMode" not in use.names


def test_an_operator_of_another_thread_is_never_named() -> None:
    """Two threads at once: sizes tell whose an allocation is, and what is named is that thread's."""
    threads: dict[int, int] = {}
    start = threading.Barrier(2)

    def allocate(size: int) -> None:
        threads[size] = threading.get_native_id()
        start.wait()
        for _ in range(150):
            torch.empty(size // 4).add_(1)

    def body() -> None:
        other = threading.Thread(target=allocate, args=(8192,))
        other.start()
        allocate(4096)
        other.join()
        allocate_alone()

    def allocate_alone() -> None:
        alone = threading.Thread(
            target=lambda: (threads.update({16384: threading.get_native_id()}), floats(16384 / MIB))
        )
        alone.start()
        alone.join()

    events = collected(body, sources=["operators"]).allocator_events
    is_alloc = events["action"] == memory.ALLOC
    for size, thread in threads.items():
        mine = is_alloc & (events["bytes"] == size)
        named = mine & (events["operator_instance"] != 0)
        assert (events["thread"][named] == thread).all() and named.any()
        assert mine.sum() == (1 if size == 16384 else 150)
    assert (
        events["operator_known"][is_alloc & (events["bytes"] == 16384)] == 1
    ).all()  # nobody else was inside an operator


def test_modules_have_what_they_allocated_forward_and_backward() -> None:
    net = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.ReLU())
    x = torch.randn(16, 64)

    def body() -> None:
        net(x).sum().backward()

    result = collected(body, sources=["operators", "modules"])
    events = result.allocator_events
    is_alloc = events["action"] == memory.ALLOC
    out, weight, bias = 16 * 128 * 4, 64 * 128 * 4, 128 * 4
    got: dict[tuple[str, int], list[int]] = {}
    for module, backward, size in zip(
        events["module"][is_alloc].tolist(),
        events["backward"][is_alloc].tolist(),
        events["bytes"][is_alloc].tolist(),
        strict=True,
    ):
        got.setdefault((module, backward), []).append(size)
    assert got["Sequential.0", 0] == [out] and got["Sequential.1", 0] == [out]
    assert weight in got["Sequential.0", 1] and got["Sequential.1", 1] == [out]
    use = memory.memory_by_module(result, 0)
    # The bias' gradient is summed by the engine, around the node.
    assert of(use, "Sequential")["total_allocated"] in (3 * out + weight, 3 * out + weight + bias)
    assert of(use, "Sequential")["self_allocated"] == 0
