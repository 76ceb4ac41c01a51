"""torch's own memory visualiser reads the snapshots that we write, and gives our numbers."""

from __future__ import annotations

import base64
import copy
import json
import pickle
import re
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from test_memory_snapshot import FRAMES, OLD

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of torch without a GPU
    from torch.cuda import _memory_viz

import cuptiprof
from cuptiprof.data.enums import ALLOCATOR_ACTIONS, BLOCK_STATES
from cuptiprof.data.result import Result

KEPT = {"action": "alloc", "addr": 0x7400, "size": 512, "stream": 0, "frames": FRAMES, "time_us": 8}
FREED = {"addr": 0x7800, "size": 256, "stream": 0, "frames": FRAMES}
EVENTS = [KEPT, {"action": "alloc", "time_us": 9, **FREED}, {"action": "free_requested", "time_us": 10, **FREED},
          {"action": "free_completed", "time_us": 11, **FREED}]  # fmt: skip


def written(tmp_path: Path, snapshot: dict[str, Any]) -> tuple[Result, dict[str, Any]]:
    """A run with that history, and the snapshot that is written of it."""
    (tmp_path / "theirs.pickle").write_bytes(pickle.dumps(snapshot))
    result = cuptiprof.open(tmp_path / "theirs.pickle")
    result.export(tmp_path / "ours.pickle", overwrite=True)
    return result, pickle.loads((tmp_path / "ours.pickle").read_bytes())


@pytest.fixture
def ours(tmp_path: Path) -> Iterator[tuple[Result, dict[str, Any]]]:
    yield written(tmp_path, {**OLD, "device_traces": [[*OLD["device_traces"][0], *EVENTS], [dict(KEPT)]]})


def embedded(page: str) -> Any:
    """The snapshot that a page of the visualiser carries."""
    match = re.search(r'\[\{"name": "snapshot.pickle", "base64": "([^"]+)"\}\]', page)
    assert match
    return pickle.loads(base64.b64decode(match[1]))


@pytest.mark.parametrize(
    ("plot", "kind"),
    [
        (_memory_viz.trace_plot, "Active Memory Timeline"),
        (lambda data: _memory_viz.trace_plot(data, plot_segments=True), "Active Cached Memory Timeline"),
        (_memory_viz.segment_plot, "Allocator State History"),
    ],
)
def test_plots(plot: Any, kind: str, ours: tuple[Result, dict[str, Any]]) -> None:
    result, snapshot = ours
    page = plot(copy.deepcopy(snapshot))
    assert kind in page and embedded(page) == snapshot
    actions = Counter(event["action"] for trace in snapshot["device_traces"] for event in trace)
    assert actions == Counter(ALLOCATOR_ACTIONS[row["action"]] for row in result.allocator_events.rows())


def test_a_plot_without_what_was_freed(ours: tuple[Result, dict[str, Any]]) -> None:
    kept = embedded(_memory_viz.trace_plot(copy.deepcopy(ours[1]), filter_freed=True))
    assert [e["addr"] for e in kept["device_traces"][0] if e["action"] == "alloc"] == [0x7000, 0x7400]
    assert not any(e["action"].startswith("free") for e in kept["device_traces"][0])


def test_memory_by_stack(ours: tuple[Result, dict[str, Any]]) -> None:
    result, snapshot = ours
    by_state: Counter[str] = Counter()
    for line in _memory_viz.memory(snapshot, format_flamegraph=lambda text: text).splitlines():
        stack, _, size = line.rpartition(" ")
        by_state[stack.split(";")[1].removeprefix("<").split()[0].rstrip(">")] += int(size)
    mine: Counter[str] = Counter()
    for row in result.allocator_blocks.rows():
        mine[BLOCK_STATES[row["state"]]] += row[
            "bytes"
        ]  # what rounding adds to a block is a gap of its own, of the same state
    assert by_state["active_allocated"] == mine["active_allocated"] == 1024
    assert by_state["inactive"] == mine["inactive"]


def test_compare(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = json.loads(json.dumps(OLD["segments"][0])) | {"address": 0x9_0000}
    other["blocks"] = [block | {"address": block["address"] + 0x8_9000} for block in other["blocks"]]
    before, after = (written(tmp_path, {**OLD, "segments": s})[1] for s in (OLD["segments"], [other]))
    text = _memory_viz.compare(before["segments"], after["segments"], format_flamegraph=lambda text: text)
    assert capsys.readouterr().out == f"only_before = [{0x7000}]\nonly_after = [{0x9_0000}]\n"
    sizes = [int(line.rpartition(" ")[2]) for line in text.splitlines() if line.startswith("only_before")]
    assert sum(sizes) == 2 << 20


def test_texts(ours: tuple[Result, dict[str, Any]]) -> None:
    _, snapshot = ours
    assert "total_reserved: 2.0MiB" in _memory_viz.segsum(snapshot)  # checks itself that blocks fill their segments
    text = _memory_viz.trace(snapshot)
    assert "Device 0 ----------------\n7 entries" in text and "Device 1 ----------------\n1 entries" in text
    assert "raise OutOfMemoryError # 1.0TiB requested, 77.0B free in CUDA" in text
