"""Slices of the page's timeline: put together again from what the page is given, they are the run's."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from conftest import trace_path
from report_results import make_result, training_step

import cuptiprof
from cuptiprof.data.enums import NO_ID, SYNC_KINDS, code_of
from cuptiprof.data.result import Result
from cuptiprof.page.sections import timeline_section
from cuptiprof.page.timeline_slices import time_span


def slices(result: Result) -> list[dict[str, Any]]:
    """What ``timeline_slices.js`` makes of the columns, in Python."""
    section = timeline_section.timeline(result)
    assert section is not None
    c = section.columns
    lanes = np.repeat(np.arange(len(c["lane_count"])), c["lane_count"])
    tracks = np.repeat(np.arange(len(c["track_lanes"])), c["track_lanes"])[lanes]
    out, at, before = [], 0, -1
    for i, lane in enumerate(lanes.tolist()):
        at = (0 if lane != before else at) + int(c["gap"][i])
        start, at, before = at, at + int(c["duration"][i]), lane
        face = int(c["face"][i])
        out.append({"start": start, "end": at, "lane": lane, "track": c["track_name"][tracks[i]], "group": c["track_group"][tracks[i]],
                    "work": c["track_kind"][tracks[i]] == "work",
                    **{name[5:]: column[face] for name, column in c.items() if name.startswith("face_")}})  # fmt: skip
    work = [one for one in out if one["work"]]
    for one, cause in zip(work, np.cumsum(c["cause"]).tolist(), strict=True):
        one["cause"] = None if cause < 0 else out[cause]
    for at, size in zip(np.cumsum(c["sized"]).tolist(), c["size"].tolist(), strict=True):
        out[at]["bytes"] = size
    for forward, backward in zip(
        np.cumsum(c["pair_forward"]).tolist(), np.cumsum(c["pair_backward"]).tolist(), strict=True
    ):
        out[forward].setdefault("nodes", []).append(out[backward])
    return out


def lanes_are_in_order(found: list[dict[str, Any]]) -> None:
    for one, following in pairwise(found):
        assert one["lane"] != following["lane"] or one["end"] <= following["start"]


@pytest.mark.parametrize("source", ["step", "train-v100"])
def test_every_slice_is_there(source: str) -> None:
    result = training_step() if source == "step" else cuptiprof.open(trace_path(source))
    span = time_span(result)
    assert span is not None
    found = slices(result)
    lanes_are_in_order(found)
    tables = {"kernel": result.kernels, "memcpy": result.memcpys, "memset": result.memsets, "call": result.api_calls}
    for kind, table in tables.items():
        ours = Counter((one["start"], one["end"]) for one in found if one["kind"] == kind)
        assert ours == Counter(
            zip((table["start"] - span[0]).tolist(), (table["end"] - span[0]).tolist(), strict=True)
        ), kind
    kernels = sorted((one for one in found if one["kind"] == "kernel"), key=lambda one: one["start"])
    grids = {axis: result.kernels[f"grid_{axis}"].tolist() for axis in "xyz"}
    rows = [
        {**row, "grid": " x ".join(str(grids[axis][i]) for axis in "xyz")}
        for i, row in enumerate(result.kernels.rows())
    ]
    rows.sort(key=lambda row: row["start"])
    calls = {row["correlation_id"]: row for row in result.api_calls.rows()}
    for one, row in zip(kernels, rows, strict=True):
        assert (
            one["region"] == row["region"]
            and one["operator"] == row["operator"]
            and one["track"] == f"stream {row['stream']}"
        )
        assert one["grid"] == row["grid"]
        call = calls.get(row["correlation_id"])
        if call is None:
            assert one["cause"] is None
        else:
            assert (one["cause"]["start"], one["cause"]["name"]) == (call["start"] - span[0], call["name"])
    assert sorted(one["bytes"] for one in found if "bytes" in one) == sorted(
        [*result.memcpys["bytes"].tolist(), *result.memsets["bytes"].tolist()]
    )
    nodes = Counter((one["name"], node["name"]) for one in found for node in one.get("nodes", ()))
    operators = {row["instance"]: row for row in result.operators.rows()}
    expected = Counter(
        (operators[row["forward"]]["name"], row["name"])
        for row in operators.values()
        if row["scope"] == 1 and row["forward"] in operators
    )
    assert nodes == expected and (source == "step" or sum(expected.values()) > 100)


def test_the_longest_of_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timeline_section, "MOST_SLICES", 3)
    kernels = [{"name": f"k{i}", "start": 100 * i, "end": 100 * i + i + 1, "correlation_id": i + 1} for i in range(8)]
    calls = [
        {"name": "cudaLaunchKernel", "start": 100 * i - 50, "end": 100 * i - 49, "correlation_id": i + 1}
        for i in range(8)
    ]
    result = make_result({"kernels": kernels, "api_calls": calls})
    assert {one["name"] for one in slices(result)} == {"k5", "k6", "k7"}
    assert all(one["cause"] is None for one in slices(result))
    section = timeline_section.timeline(result)
    assert section is not None and "13 of at most 6ns are left out" in section.summary


def test_work_that_overlaps_has_lanes_of_its_own() -> None:
    kernels = [
        {"name": "a", "start": 0, "end": 10},
        {"name": "b", "start": 5, "end": 15},
        {"name": "c", "start": 12, "end": 20},
    ]
    found = slices(make_result({"kernels": kernels}))
    lanes_are_in_order(found)
    assert {one["name"]: one["lane"] for one in found} == {"a": 0, "b": 1, "c": 0}


def test_nothing_to_draw() -> None:
    assert timeline_section.timeline(make_result({})) is None


def lanes_of(result: Result, kind: str) -> list[tuple[str, str, str, int, int]]:
    return [(one["name"], one["track"], one["group"], one["start"], one["end"]) for one in slices(result) if one["kind"] == kind]  # fmt: skip


def test_regions_as_the_gpu_saw_them() -> None:
    regions = [
        {"name": name, "path": path, "start": 0, "end": 50, "thread": 7, "instance": i, "parent": i - 1}
        for i, (name, path) in enumerate((("step", "step"), ("fwd", "step/fwd")), 1)
    ]
    kernels = [{"name": "k", "start": start, "end": start + 10, "device": 1, "stream": stream, "region_instance": of}
               for start, stream, of in ((20, 7, 1), (40, 7, 2), (60, 7, 2), (90, 8, 2))]  # fmt: skip
    result = make_result({"regions": regions, "kernels": kernels})
    lanes_are_in_order(slices(result))
    # As Kineto has it, a ns beside its work; not beyond the end of the run.
    assert sorted(lanes_of(result, "GPU region")) == [
        ("fwd", "stream 7: regions", "GPU 1", 39, 71),
        ("fwd", "stream 8: regions", "GPU 1", 89, 100),
        ("step", "stream 7: regions", "GPU 1", 19, 71),
        ("step", "stream 8: regions", "GPU 1", 89, 100),
    ]
    tracks = list(dict.fromkeys(one["track"] for one in slices(result) if one["group"] == "GPU 1"))
    assert tracks == ["stream 7: regions", "stream 7", "stream 8: regions", "stream 8"]


def test_waits_are_drawn_with_their_stream() -> None:
    waits = [
        {"type": code_of(SYNC_KINDS, text), "stream": stream, "start": start, "end": start + 30, "context": 2}
        for text, stream, start in (("Stream Sync", 7, 10), ("Stream Wait Event", 8, 20), ("Context Sync", NO_ID, 100))
    ]
    kernels = [{"name": "k", "start": 5, "end": 60, "device": 1, "stream": 7, "context": 2}]
    found = lanes_of(make_result({"kernels": kernels, "synchronizations": waits}), "wait")
    assert found == [
        ("Context Sync", "GPU: waits", "GPU 1", 95, 125),
        ("Stream Sync", "stream 7: waits", "GPU 1", 5, 35),
        ("Stream Wait Event", "stream 8: waits", "GPU 1", 15, 45),
    ]
    assert time_span(make_result({"synchronizations": waits})) == (10, 130)


def test_collectives_have_a_lane_of_their_thread() -> None:
    calls = [{"name": "all_reduce", "start": 10, "end": 20, "thread": 9, "region": "step", "instance": 1}]
    result = make_result({"collectives": calls})
    assert lanes_of(result, "collective") == [("all_reduce", "collectives", "thread 9", 0, 10)]
    assert [one["region"] for one in slices(result)] == ["step"]


def test_threads_have_their_names() -> None:
    calls = [{"name": "cudaMalloc", "start": i, "end": i + 1, "thread": i} for i in (7, 8, 9)]
    names = {"threads": {"7": "trainer", "8": "<b>loader</b>", "9": 3, "x": "y"}}
    result = make_result({"api_calls": calls}, {"pid": 7, "nvtx_names": names})
    assert [one["group"] for one in slices(result)] == ["trainer (7) (main)", "<b>loader</b> (8)", "thread 9"]
    damaged = make_result({"api_calls": calls}, {"pid": 7, "nvtx_names": {"threads": 5}})
    assert [one["group"] for one in slices(damaged)] == ["thread 7 (main)", "thread 8", "thread 9"]
