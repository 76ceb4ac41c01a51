"""What a Chrome trace that was opened and written again still has: every category, every arrow, the arguments that results keep."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import trace_path
from report_results import make_result

import cuptiprof
from cuptiprof.analysis.allocators.allocator_memory import ALLOC, FREED
from cuptiprof.data.result import Result

TRACES = [
    "train-v100", "alexnet-a100", "triton-a100", "counters-a100", "event-sync", "event-sync-streams", "simple-add",
    "sampled-nccl",
]  # fmt: skip
# The frame around a profile is made anew; so are arrows of calls without work, and what runs on the GPU for an annotation.
MADE_ANEW = {None, "Trace", "ac2g", "gpu_user_annotation"}
ARGUMENTS = {
    "cpu_op": ["External id", "Input Dims", "Input type", "Sequence number", "Fwd thread id"],
    "kernel": ["correlation", "grid", "block", "registers per thread", "shared memory", "queued"],
    "gpu_memcpy": ["bytes", "memory bandwidth (GB/s)"],
    "cuda_sync": ["cuda_sync_kind"],
}  # fmt: skip


def of_file(path: Path) -> list[dict[str, Any]]:
    data = path.read_bytes()
    events: list[dict[str, Any]] = json.loads(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data)["traceEvents"]
    return events


@pytest.mark.parametrize("name", TRACES)
def test_a_trace_keeps_its_categories(name: str, tmp_path: Path) -> None:
    cuptiprof.open(trace_path(name)).export(tmp_path / "t.json.gz")
    theirs, mine = of_file(trace_path(name)), of_file(tmp_path / "t.json.gz")
    counts, kept = (
        Counter((e.get("cat"), e["ph"]) for e in events if e.get("cat") not in MADE_ANEW) for events in (theirs, mine)
    )
    # An arrow has an operator at either end; traces of some versions have none of them.
    assert {key: n for key, n in counts.items() if key[0] != "fwdbwd"} == {
        key: n for key, n in kept.items() if key[0] != "fwdbwd"
    }
    assert all(kept[key] >= n for key, n in counts.items())
    for category, keys in ARGUMENTS.items():
        for key in keys:
            before, after = (
                sum(e.get("cat") == category and key in e.get("args", ()) for e in events) for events in (theirs, mine)
            )
            assert after >= before, (category, key)


@pytest.mark.parametrize("name", TRACES)
def test_a_result_keeps_its_tables(name: str, tmp_path: Path) -> None:
    result = cuptiprof.open(trace_path(name))
    result.export(tmp_path / "t.json")
    again = cuptiprof.open(tmp_path / "t.json")
    for table in result.tables:
        if table not in ("markers", "launch_configs"):  # annotations on the GPU are made anew
            assert len(again.tables[table]) == len(result.tables[table]), table
    for table, column in (("collectives", "in_bytes"), ("collectives", "group_size"), ("operators", "sequence")):
        assert np.array_equal(result.tables[table][column], again.tables[table][column]), (table, column)
    for table, column in (("collectives", "name"), ("collectives", "dtype"), ("operators", "shapes")):
        assert list(result.tables[table][column]) == list(again.tables[table][column]), (table, column)
    assert sorted(result.counters) == sorted(again.counters)
    for metric in result.counters:
        assert np.array_equal(result.counters[metric], again.counters[metric], equal_nan=True)


def collectives() -> Result:
    return make_result(
        {
            "collectives": [
                {"name": "all_reduce", "start": 100, "end": 200, "thread": 70, "dtype": "float32", "in_bytes": 4096,
                 "out_bytes": 4096, "group": "0", "ranks": "[0,1]", "group_size": 2, "sequence": 8, "instance": 1,
                 "backend": "nccl"},
                {"name": "send", "start": 300, "end": 400, "thread": 70, "dtype": "bfloat16", "in_bytes": 64, "peer": 2,
                 "instance": 2, "backend": "nccl", "is_async": 1},
                {"name": "broadcast", "start": 500, "end": 600, "thread": 70, "dtype": "odd", "in_bytes": 7, "instance": 3,
                 "backend": "nccl"},
            ],
            "operators": [{"name": "record_param_comms", "start": 100, "end": 200, "thread": 70, "instance": 1, "scope": 1}],
        },
        {"pid": 9},
    )  # fmt: skip


def test_collectives_of_a_session(tmp_path: Path) -> None:
    """Of those that no operator tells of there is a record, as torch.profiler has it."""
    collectives().export(tmp_path / "t.json")
    records = [e for e in of_file(tmp_path / "t.json") if e["name"] == "record_param_comms"]
    assert len(records) == 3
    by_name = {e["args"]["Collective name"]: e["args"] for e in records}
    assert by_name["all_reduce"]["In msg nelems"] == 1024 and by_name["all_reduce"]["Seq"] == 7
    assert by_name["send"]["Dst Rank"] == 1 and by_name["send"]["Is asynchronized op"] is True
    assert "In msg nelems" not in by_name["broadcast"] and by_name["broadcast"]["dtype"] == "odd"
    again = cuptiprof.open(tmp_path / "t.json").tables["collectives"]
    assert list(again["name"]) == ["all_reduce", "send", "broadcast"] and again["peer"].tolist() == [0, 2, 0]
    assert again["in_bytes"].tolist()[:2] == [4096, 64] and again["sequence"].tolist() == [8, 0, 0]
    assert again["is_async"].tolist() == [0, 1, 0] and list(again["ranks"]) == ["[0,1]", "", ""]


def test_allocations_come_back(tmp_path: Path) -> None:
    rows = [
        {
            "timestamp": 10 * i,
            "action": ALLOC if i < 3 else FREED,
            "bytes": 512,
            "address": 4096 * (i % 3 + 1),
            "thread": 70,
        }
        for i in range(6)
    ]
    result = make_result({"allocator_events": rows, "kernels": [{"name": "k", "start": 1, "end": 100}]}, {"pid": 9})
    result.export(tmp_path / "t.json")
    memory = [e for e in of_file(tmp_path / "t.json") if e["name"] == "[memory]"]
    again = cuptiprof.open(tmp_path / "t.json").allocator_events
    assert len(memory) == len(again) > 0
    assert [e["args"]["Bytes"] for e in memory] == [
        size if action == ALLOC else -size
        for size, action in zip(again["bytes"].tolist(), again["action"].tolist(), strict=True)
    ]
