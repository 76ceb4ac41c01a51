"""Occupancy against NVIDIA's own calculator (recorded) and its published example."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from cuptiprof.data import occupancy as occ

REFERENCE = Path(__file__).parents[1] / "golden" / "occupancy_cuda13.csv"


def _rows() -> dict[str, list[dict[str, int]]]:
    by_chip: dict[str, list[dict[str, int]]] = {}
    with REFERENCE.open(newline="") as file:
        for row in csv.DictReader(file):
            by_chip.setdefault(row.pop("cc"), []).append({key: int(value) for key, value in row.items()})
    return by_chip


@pytest.mark.parametrize("cc", sorted(_rows()))
def test_equals_cuda_occupancy_header(cc: str) -> None:
    rows = _rows()[cc]
    assert len(rows) >= 50
    columns = {key: np.array([row[key] for row in rows]) for key in rows[0]}
    chip = occ.chip_limits(*map(int, cc.split(".")))
    assert chip is not None
    result = occ.occupancy(
        chip,
        columns["threads"],
        columns["registers"],
        columns["static_smem"],
        columns["dynamic_smem"],
        columns["carveout"],
    )
    for name, expected in {
        "limit_warps": "warps",
        "limit_registers": "regs",
        "limit_shared_memory": "smem",
        "limit_blocks": "ctas",
        "allocated_registers": "alloc_regs",
        "allocated_shared_memory": "alloc_smem",
        "active_blocks": "blocks",
    }.items():
        np.testing.assert_array_equal(getattr(result, name), columns[expected], err_msg=name)


def test_kernel_above_48_kib_has_blocks() -> None:
    a100 = occ.chip_limits(8, 0)
    assert a100 is not None
    result = occ.occupancy(a100, 128, 230, 0, 81_920)
    assert result.active_blocks.tolist() == [2]
    assert result.theoretical().tolist() == [0.125]
    assert result.limiting_factors(0) == "REGS|SMEM"


def test_unknown_chips() -> None:
    assert occ.chip_limits(99, 0) is None
    assert occ.chip_limits(9, 7) == occ.chip_limits(9, 0)
    assert occ.chip_limits(10, 1) == occ.chip_limits(10, 0)
