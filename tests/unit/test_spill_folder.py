"""Stores on disk are checked before they are anybody's rows: a damaged one is left out and counted."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import cuptiprof
from cuptiprof.data.tables import Strings, Table, merge, schema
from cuptiprof.io.spill_folder import SpillFolder

ROWS = 40


def tables(store: int) -> dict[str, Table]:
    strings = Strings(["", f"k{store}"])
    columns = {
        "start": np.arange(ROWS),
        "end": np.arange(ROWS) + 9,
        "name": np.ones(ROWS, int),
        "config": np.ones(ROWS, int),
    }
    out = {name: Table.empty(name, strings) for name in schema()}
    out["kernels"] = Table.from_columns("kernels", columns, strings)
    out["launch_configs"] = Table.from_columns("launch_configs", {"grid_x": [1, 10 + store]}, strings)
    out["kernels"].configs = out["launch_configs"]
    return out


@pytest.fixture
def folder(tmp_path: Path) -> SpillFolder:
    spilled = SpillFolder(tmp_path, {"metadata": {"pid": 1}})
    for store in range(2):
        spilled.write(tables(store))
    return spilled


def rewrite(file: Path, column: str, values: Any) -> None:
    old = pa.ipc.open_file(str(file)).read_all()
    new = old.set_column(old.column_names.index(column), column, pa.array(values))
    with pa.OSFile(str(file), "wb") as f, pa.ipc.new_file(f, new.schema) as writer:
        writer.write_table(new)


def test_stores_become_one_run(folder: SpillFolder) -> None:
    merged = merge(folder.read())
    folder.remove()  # what is mapped stays readable
    assert merged["kernels"]["name"].tolist() == ["k0"] * ROWS + ["k1"] * ROWS
    assert merged["kernels"]["grid_x"].tolist() == [10] * ROWS + [11] * ROWS
    assert merged["kernels"]["device"].tolist() == [0] * 2 * ROWS


@pytest.mark.parametrize(
    "damage, message",
    [
        (lambda store: rewrite(store / "kernels.arrow", "name", np.full(ROWS, 2, np.uint32)), "column name: 2 of 2"),
        (
            lambda store: rewrite(store / "kernels.arrow", "config", np.full(ROWS, 2, np.uint32)),
            "column config: 2 of 2",
        ),
        (lambda store: rewrite(store / "kernels.arrow", "start", np.zeros(ROWS)), "not what it was"),
        (lambda store: rewrite(store / "kernels.arrow", "start", [None] * ROWS), "not what it was"),
        (lambda store: rewrite(store / "strings.arrow", "text", [1, 2]), "not what it was"),
        (lambda store: (store / "kernels.arrow").write_bytes((store / "kernels.arrow").read_bytes()[:-300]), "damaged"),
        (lambda store: (store / "strings.arrow").unlink(), "cannot be read"),
        (lambda store: (store / "rows.json").write_text(json.dumps({"kernels": ROWS - 1})), "not what it was"),
        (lambda store: (store / "rows.json").write_text("[]"), "damaged"),
    ],
)
def test_a_damaged_store_is_left_out(damage: Callable[[Path], None], message: str, folder: SpillFolder) -> None:
    damage(folder.path / "000000")
    opened = cuptiprof.open(folder.path)
    assert opened.kernels["name"].tolist() == ["k1"] * ROWS
    assert message in opened.metadata["note"]
