"""Snapshots of PyTorch's allocator from files: nothing in them runs, and what makes no sense is counted or refused."""

from __future__ import annotations

import gzip
import json
import os
import pickle
import random
import struct
from pathlib import Path
from typing import Any

import pytest
from report_results import make_result

import cuptiprof
from cuptiprof.errors import CuptiprofError, ResultError
from cuptiprof.export.memory_timeline import export_memory_timeline

FRAMES = [
    {"filename": "model.py", "line": 12, "name": "forward"},
    {"filename": "train.py", "line": 3, "name": "<module>"},
]
# As torch 2.4 writes it: no pool_id, no compile_context, no user_metadata; frames only where they were asked for.
OLD: dict[str, Any] = {
    "segments": [
        {"device": 0, "address": 0x7000, "total_size": 2 << 20, "allocated_size": 1024, "active_size": 1024, "requested_size": 1000,
         "stream": 0, "segment_type": "small", "segment_pool_id": (0, 0), "is_expandable": False, "frames": [],
         "blocks": [{"address": 0x7000, "size": 1024, "requested_size": 1000, "state": "active_allocated", "frames": FRAMES},
                    {"address": 0x7400, "size": (2 << 20) - 1024, "requested_size": 0, "state": "inactive", "frames": []}]},
    ],
    "device_traces": [[
        {"action": "segment_alloc", "addr": 0x7000, "size": 2 << 20, "stream": 0, "time_us": 5},
        {"action": "alloc", "addr": 0x7000, "size": 1000, "stream": -1, "frames": FRAMES, "time_us": 6},
        {"action": "oom", "device_free": 77, "size": 1 << 40, "stream": 0, "time_us": 7},
    ]],
    "allocator_settings": {},
}  # fmt: skip


# As torch 2.7 wrote on an H100 with stacks="all": frames of C++ first, and -1 for a line of Python that is none.
WITH_CPP = [
    {"name": "torch::unwind::unwind()", "filename": "??", "line": 0},
    {"name": "at::native::empty_cuda", "filename": "/pytorch/aten/src/ATen/native/cuda/TensorFactories.cu", "line": 70},
    {
        "name": "init_gpu_context",
        "filename": "/venv/lib/python3.13/site-packages/torch/_subclasses/fake_tensor.py",
        "line": 2**64 - 1,
    },
    {"name": "step", "filename": "/home/me/train.py", "line": 8},
]


def test_frames_of_c_plus_plus_and_lines_that_are_none(tmp_path: Path) -> None:
    entry = {"action": "free_requested", "addr": 1, "size": 4, "stream": 0, "time_us": 9, "frames": WITH_CPP}
    result = opened(tmp_path, pickle.dumps({**OLD, "device_traces": [[entry]]}))
    (row,) = result.allocator_events.rows()
    assert row["line"] == "/home/me/train.py:8 step" and not result.losses
    assert [line for _, _, line in result.python_stacks().places(row["stack"])] == [0, 70, 0, 8]


def opened(tmp_path: Path, data: bytes) -> Any:
    (tmp_path / "s.pickle").write_bytes(data)
    return cuptiprof.open(tmp_path / "s.pickle")


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_an_older_torch_s(tmp_path: Path, protocol: int) -> None:
    result = opened(tmp_path, pickle.dumps(OLD, protocol=protocol))
    rows = list(result.allocator_events.rows())
    assert [(r["timestamp"], r["bytes"], r["device_free"]) for r in rows] == [
        (5000, 2 << 20, 0),
        (6000, 1000, 0),
        (7000, 1 << 40, 77),
    ]
    assert rows[1]["line"] == "model.py:12 forward" and rows[1]["stream"] == 2**64 - 1
    assert result.python_stacks().places(rows[1]["stack"]) == [("model.py", "forward", 12), ("train.py", "<module>", 3)]
    assert [r["bytes"] for r in result.allocator_blocks.rows()] == [1024, (2 << 20) - 1024]
    text = str(result.report("allocator"))
    assert "Out of memory at 2.0000us: 1.0000TB were asked for, CUDA had 77B; 1000B were allocated" in text


class Evil:
    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, ("touch /tmp/cuptiprof-was-here",)


@pytest.mark.parametrize(
    "value", [Evil(), {"device_traces": [Evil()]}, {"device_traces": b"bytes"}, {"device_traces": {1, 2}}, 1 << 3000]
)
def test_what_is_more_than_values_is_not_opened(tmp_path: Path, value: Any) -> None:
    with pytest.raises(ResultError, match=r"more than values|no device_traces"):
        opened(tmp_path, pickle.dumps(value, protocol=4))
    assert not Path("/tmp/cuptiprof-was-here").exists()


def test_a_place_in_the_memo_that_would_take_all_memory(tmp_path: Path) -> None:
    data = b"\x80\x02}r" + struct.pack("<I", 0xFFFFFFF0) + b"."
    with pytest.raises(ResultError, match="damaged"):
        opened(tmp_path, data)


def test_one_list_a_million_times(tmp_path: Path) -> None:
    trace = [OLD["device_traces"][0][0]] * 10_000
    with pytest.raises(ResultError, match="more entries than it has bytes"):
        opened(tmp_path, pickle.dumps({"device_traces": [trace] * 10_000, "segments": []}))


@pytest.mark.parametrize(
    "entry",
    [
        {}, None, 5, {"action": "alloc"}, {"action": "dance", "addr": 1, "size": 1, "time_us": 1},
        {"action": "alloc", "addr": -1, "size": 1, "time_us": 1}, {"action": "alloc", "addr": 1, "size": 1 << 64, "time_us": 1},
        {"action": "alloc", "addr": 1, "size": 1.5, "time_us": 1}, {"action": "alloc", "addr": 1, "size": 1, "time_us": 1 << 62},
        {"action": ["alloc"], "addr": 1, "size": 1, "time_us": 1},
        {"action": "alloc", "addr": 1, "size": 1, "time_us": 1, "pool_id": (1, 2, 3)},
        {"action": "alloc", "addr": 1, "size": 1, "time_us": 1, "frames": [{"filename": 5, "name": "f", "line": 1}]},
        {"action": "alloc", "addr": 1, "size": 1, "time_us": 1, "user_metadata": 7},
    ],
)  # fmt: skip
def test_entries_that_make_no_sense_are_counted(tmp_path: Path, entry: Any) -> None:
    snapshot = {**OLD, "device_traces": [[*OLD["device_traces"][0], entry]]}
    result = opened(tmp_path, pickle.dumps(snapshot))
    assert len(result.allocator_events) == 3 and result.losses["unknown_records"] == 1
    snapshot = {**OLD, "segments": [*OLD["segments"], entry]}
    result = opened(tmp_path, pickle.dumps(snapshot))
    assert len(result.allocator_blocks) == 2 and result.losses["unknown_records"] == 1


def test_damaged_files_are_refused_or_read(tmp_path: Path) -> None:
    whole = pickle.dumps(OLD, protocol=4)
    rng = random.Random(3)
    for _ in range(400):
        data = bytearray(whole)
        for _ in range(rng.randrange(1, 4)):
            data[rng.randrange(1, len(data))] = rng.randrange(256)
        try:
            result = opened(tmp_path, bytes(data[: rng.choice((len(data), rng.randrange(1, len(data))))]))
            str(result.report("allocator"))
            result.export(tmp_path / "again.pickle", overwrite=True)
        except CuptiprofError:
            pass


def test_timeline_as_torch_writes_it(tmp_path: Path) -> None:
    result = opened(tmp_path, pickle.dumps(OLD))
    for name in ("t.json", "t.json.gz"):
        export_memory_timeline(result, tmp_path / name)
        raw = (tmp_path / name).read_bytes()
        times, sizes = json.loads(gzip.decompress(raw) if name.endswith("gz") else raw)
        assert times == [5, 6, 7] and sizes == [[0] * 8 + [size] for size in (0, 1000, 1000)]
    export_memory_timeline(result, tmp_path / "t.html")
    result.export(tmp_path / "t.memory.html")
    page = (tmp_path / "t.html").read_text()
    assert page == (tmp_path / "t.memory.html").read_text() and page.count("<polygon") == 2 and "1000B" in page
    with pytest.raises(ResultError, match=r"is \.html, \.json or \.json\.gz"):
        export_memory_timeline(result, tmp_path / "t.png")
    with pytest.raises(ResultError, match="device 3"):
        export_memory_timeline(result, tmp_path / "t.html", 3)


def test_a_run_without_history(tmp_path: Path) -> None:
    result = make_result({"kernels": [{"name": "k", "start": 0, "end": 10}]})
    for name in ("s.pickle", "t.memory.html"):
        with pytest.raises(ResultError, match="no history"):
            result.export(tmp_path / name)
    assert "allocator" in str(result.report("allocator"))
