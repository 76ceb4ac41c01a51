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


def _splitmix(at: np.ndarray) -> np.ndarray:
    """As in golden/occupancy_reference.cpp."""
    z = (at + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def test_equals_cuda_occupancy_header_on_60_000_launches() -> None:
    lines = (REFERENCE.parent / "occupancy_cuda13_blocks.txt").read_text().split("\n")[:-1]
    launches = 7_500
    for i, (cc, _, answers) in enumerate(line.partition(" ") for line in lines):
        chip = occ.chip_limits(*map(int, cc.split(".")))
        assert chip is not None and len(answers) == launches
        at = np.arange(i * launches, (i + 1) * launches, dtype=np.uint64)[:, None] * np.uint64(8)
        drawn = _splitmix(at + np.arange(8, dtype=np.uint64))

        def below(field: int, limit: int, drawn: np.ndarray = drawn) -> np.ndarray:
            return (drawn[:, field] % np.uint64(limit)).astype(np.int64)

        optin = chip.max_shared_memory_per_block >> 10
        found = occ.occupancy(
            chip,
            1 + below(0, 1024),
            1 + below(1, 255),
            below(2, 2) * below(3, 48 * 1024 + 1),
            below(4, 2) * below(5, (optin + 4) * 1024 + 1),
            np.where(below(6, 2) == 1, 255, below(7, 101)),
        )
        np.testing.assert_array_equal(found.active_blocks, np.frombuffer(answers.encode(), np.uint8) - ord("0"))
    assert len(lines) == 8


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
