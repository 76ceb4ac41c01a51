"""A trace played through the whole collector gives what opening the file gives."""

from __future__ import annotations

import json
import time

import numpy as np
import pytest
from conftest import trace_path

import cuptiprof

COLUMNS = {
    "kernels": ("start", "end", "name", "correlation_id", "region", "thread", "stream", "context", "grid_x", "grid_y", "grid_z", "block_x", "block_y", "registers_per_thread", "static_shared_memory"),
    "memcpys": ("start", "end", "bytes", "copy_kind", "src_kind", "dst_kind", "stream", "region", "thread"),
    "memsets": ("start", "end", "bytes", "region"),
    "api_calls": ("start", "end", "name", "cbid", "thread", "correlation_id", "region"),
    "synchronizations": ("start", "end", "type", "stream", "correlation_id"),
    "regions": ("start", "end", "name", "path", "thread", "depth"),
}  # fmt: skip


def ordered(table: cuptiprof.tables.Table) -> cuptiprof.tables.Table:  # type: ignore[name-defined]
    return table.where(np.lexsort([table["end"], table["start"]]))


@pytest.mark.parametrize("name", ["train-v100", "alexnet-a100", "triton-a100"])
def test_replay_equals_the_file(name: str) -> None:
    with cuptiprof.profile(device=f"replay:{trace_path(name)}") as prof:
        pass
    played, read = prof.result(), cuptiprof.open(trace_path(name))
    assert played.simulated and not read.simulated
    assert not played.losses
    for table, columns in COLUMNS.items():
        a, b = ordered(played.tables[table]), ordered(read.tables[table])
        assert len(a) == len(b), table
        for column in columns:
            assert (a[column] == b[column]).all(), f"{table}.{column}"
    for view in ("summary", "regions", "api-trace", "gpu-trace"):
        rows = [json.loads(r.report(view).to("json"))["rows"] for r in (played, read)]
        for row in (*rows[0], *rows[1]):
            row.pop("device", None)  # the stand-in says "(simulated)"
        key = lambda row: json.dumps(row, sort_keys=True)  # noqa: E731
        assert sorted(rows[0], key=key) == sorted(rows[1], key=key), view
    assert "SIMULATED" in str(played.summary())


def test_speed_keeps_the_pace() -> None:
    trace = cuptiprof.open(trace_path("train-v100"))
    recorded = (trace.api_calls["end"].max() - trace.api_calls["start"].min()) / 1e9
    began = time.perf_counter()
    with cuptiprof.profile(device=f"replay:{trace_path('train-v100')}", speed=2.0):
        took = time.perf_counter() - began
    assert took > recorded / 2 * 0.9


def test_a_missing_trace_is_an_error_and_leaves_no_session() -> None:
    from cuptiprof.errors import CuptiprofError

    with pytest.raises(CuptiprofError):
        cuptiprof.profile(device="replay:nowhere.json").start()
    with cuptiprof.profile(device=f"replay:{trace_path('triton-a100')}") as prof:
        pass
    assert len(prof.result().kernels) == 1
