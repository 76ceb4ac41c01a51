"""Damaged ELF files give ElfError, never another exception."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from cuptiprof.device.elf import ElfError, read_elf
from cuptiprof.sim.sim_device import library_path


def _read(file: Path, data: bytes) -> bool:
    file.write_bytes(data)
    try:
        read_elf(file)
    except ElfError:
        return False
    return True


@pytest.mark.parametrize("seed", range(4))
def test_flipped_bytes(tmp_path: Path, seed: int) -> None:
    """Bytes of the headers, the dynamic section and the section table, where every number is an offset or a size."""
    rng = random.Random(seed)
    good = library_path().read_bytes()
    shoff = int.from_bytes(good[40:48], "little")
    phoff = int.from_bytes(good[32:40], "little")
    areas = [(0, 64), (phoff, phoff + 56 * 12), (shoff, len(good))]
    refused = 0
    for _ in range(100):
        data = bytearray(good)
        for _ in range(rng.randint(1, 8)):
            start, end = rng.choice(areas)
            data[rng.randrange(start, end)] = rng.choice((0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)))
        refused += not _read(tmp_path / "x.so", bytes(data))
    assert 0 < refused < 100  # both paths were taken


def test_truncated(tmp_path: Path) -> None:
    good = library_path().read_bytes()
    assert _read(tmp_path / "x.so", good)
    for cut in (1, 8, 63, 64, len(good) // 3, len(good) - 1):
        assert not _read(tmp_path / "x.so", good[:cut])
