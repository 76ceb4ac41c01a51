"""Run folders of format 1: tests/data/run-format1 is one of `content()`, which nothing can write any more."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from report_results import config, make_result

import cuptiprof
from cuptiprof.data.result import Result
from cuptiprof.data.tables import schema
from cuptiprof.errors import ResultError

SAVED = Path(__file__).resolve().parents[1] / "data" / "run-format1"


def content() -> Result:
    """Kernels of three launch shapes that come again, in regions, with copies, a counter and a name that is not ASCII."""
    kernels = [
        {"name": name, "start": 1000 * i + 10, "end": 1000 * i + 700, "correlation_id": i + 1, "config": shape,
         "region": region, "region_instance": 1 + i % 2, "thread": 70, "device": 0, "context": 1, "stream": 7}
        for i, (name, shape, region) in enumerate(
            [("_Z4gemmPfS_i", 0, "step/fwd"), ("_Z4gemmPfS_i", 1, "step/fwd"), ("größe", 2, "step"),
             ("_Z4gemmPfS_i", 1, "step"), ("sgd", 0, ""), ("größe", 2, "step/fwd")]
        )
    ]  # fmt: skip
    return make_result(
        {
            "kernels": kernels,
            "launch_configs": [
                config(dynamic_shared_memory=2048, static_shared_memory=16),
                config(grid=(2**31 - 1, 1, 1), local_memory_total=2**40),
                config(block=(32, 2, 1), launch_type=1),
            ],
            "memcpys": [{"start": 5, "end": 9, "bytes": 2**40, "copy_kind": 1, "region": "step", "stream": 7}],
            "regions": [
                {"start": 0, "end": 6000, "name": "step", "path": "step", "instance": 1, "thread": 70},
                {"start": 1, "end": 2500, "name": "fwd", "path": "step/fwd", "instance": 2, "parent": 1, "depth": 1},
            ],
            "devices": [{"device": 0, "name": "Tesla V100", "compute_capability_major": 7, "num_multiprocessors": 80}],
            "metric_ranges": [{"id": 1, "kind": 1, "correlation_id": 2, "name": "_Z4gemmPfS_i", "start": 1010, "end": 1700}],
            "metrics": [{"metric": "ipc", "range": 1, "value": 1.25, "count": 1}],
        },
        {"device": "sim", "simulated": True, "pid": 9, "rank": 0, "clock_pairs": [[0, 10**18]], "note": "größe"},
        {"pool_exhausted": 3},
    )  # fmt: skip


def same(a: Result, b: Result) -> None:
    for name, columns in schema().items():
        left, right = a.tables[name], b.tables[name]
        for column in columns:
            if (name, column) != ("kernels", "config"):
                np.testing.assert_array_equal(left[column], right[column], f"{name}.{column}")


def test_a_run_of_format_1_is_read() -> None:
    opened, expected = cuptiprof.open(SAVED), content()
    same(opened, expected)
    for column in schema()["launch_configs"]:
        np.testing.assert_array_equal(opened.kernels[column], expected.kernels[column], column)
    assert opened.kernels["config"].tolist() == [0, 1, 2, 1, 0, 2]
    assert opened.metadata == expected.metadata and dict(opened.losses) == dict(expected.losses)
    assert opened.kernels["ipc"][1] == 1.25
    assert str(opened.summary()) == str(expected.summary())


def test_saved_again_it_is_of_format_2(tmp_path: Path) -> None:
    opened = cuptiprof.open(SAVED)
    opened.save(tmp_path / "run")
    assert json.loads((tmp_path / "run" / "run.json").read_text())["format"] == 2
    again = cuptiprof.open(tmp_path / "run")
    same(opened, again)
    assert again.kernels["config"].tolist() == opened.kernels["config"].tolist()


def _part(run: Path) -> Path:
    return run / "kernels" / "rank=0" / "part-0.parquet"


def _without(column: str) -> Callable[[Path], None]:
    def damage(run: Path) -> None:
        import pyarrow.parquet as pq

        pq.write_table(pq.ParquetFile(_part(run)).read().drop_columns([column]), _part(run))

    return damage


@pytest.mark.parametrize(
    "damage, message",
    [
        (lambda run: _part(run).write_bytes(_part(run).read_bytes()[:900]), "damaged"),
        (lambda run: _part(run).unlink(), "missing"),
        (_without("grid_x"), "column grid_x is missing"),
        (_without("name"), "column name is missing"),
    ],
)
def test_damaged(damage: Callable[[Path], None], message: str, tmp_path: Path) -> None:
    shutil.copytree(SAVED, tmp_path / "run")
    damage(tmp_path / "run")
    with pytest.raises(ResultError, match=message):
        cuptiprof.open(tmp_path / "run")
