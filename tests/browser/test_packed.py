"""Columns into the page and out of it again."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from playwright.sync_api import Page

from cuptiprof.page.packed import Coded, pack
from cuptiprof.page.section import ASSETS

UNPACKED = """async () => {
  const { facts, columns } = await cuptiprof.unpack("data-x");
  const listed = (column) => Array.from({ length: column.length }, (_, i) => (column instanceof cuptiprof.Texts ? column.at(i) : column[i]));
  return { facts, columns: Object.fromEntries(Object.entries(columns).map(([name, column]) => [name, listed(column)])) };
}"""


def through(open_page: Callable[[Path], Page], tmp_path: Path, columns: dict[str, Any]) -> dict[str, list[Any]]:
    path = tmp_path / "x.html"
    data = f'<script type="application/octet-stream;base64" id="data-x">{pack(columns, {"said": 1})}</script>'
    path.write_text(f"<!DOCTYPE html><title>x</title>{data}<script>{(ASSETS / 'columns.js').read_text()}</script>")
    found = open_page(path).evaluate(UNPACKED)
    assert found["facts"] == {"said": 1}
    out: dict[str, list[Any]] = found["columns"]
    return out


def test_integers_of_all_kinds(open_page: Callable[[Path], Page], tmp_path: Path) -> None:
    rng = random.Random(1)
    columns: dict[str, Any] = {"none": np.zeros(0, np.int64), "one": np.array([-5])}
    for bits in (1, 7, 8, 15, 16, 31, 32, 40, 52):
        span = 1 << bits
        values = [rng.randrange(span) for _ in range(50)]
        columns[f"plain_{bits}"] = np.array(values, np.int64)
        columns[f"signed_{bits}"] = np.array([v - span // 2 for v in values], np.int64)
        columns[f"rising_{bits}"] = np.cumsum(
            np.array([rng.randrange(max(span // 64, 2)) for _ in range(50)], np.int64)
        )
        columns[f"falling_{bits}"] = columns[f"rising_{bits}"][::-1].copy()
        columns[f"walk_{bits}"] = (1 << 50) + np.cumsum(
            np.array([rng.randrange(-span // 64 - 1, span // 64 + 1) for _ in range(50)])
        )
    columns["unsigned"] = np.array([0, 2**32 - 1, 7], np.uint32)
    columns["flags"] = np.array([True, False, True])
    found = through(open_page, tmp_path, columns)
    for name, values in columns.items():
        assert found[name] == [int(v) for v in values], name


def test_floats_and_texts(open_page: Callable[[Path], Page], tmp_path: Path) -> None:
    floats = np.array([0.1, -2.5e300, 5e-324, 3.0])
    columns: dict[str, Any] = {
        "float": floats, "narrow": np.array([0.5, -1.25], np.float32), "texts": ["a", None, "b", "a", "</script>"],
        "coded": Coded(np.array([2, -1, 0, 2]), ["x", "never", "z"]),
    }  # fmt: skip
    found = through(open_page, tmp_path, columns)
    assert found["float"] == floats.tolist() and found["narrow"] == [0.5, -1.25]
    assert found["texts"] == columns["texts"] and found["coded"] == ["z", None, "x", "z"]
