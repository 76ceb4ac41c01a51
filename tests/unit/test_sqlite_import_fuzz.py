"""Damaged databases of Nsight Systems and nvprof: opening one gives a result or an error of ours, and what was opened can be shown.

As a program it goes on for as long as it is told: ``PYTHONPATH=tests python tests/unit/test_sqlite_import_fuzz.py --minutes 10``, each file in a limit of
time, all of them in a limit of memory.
"""

from __future__ import annotations

import contextlib
import random
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fuzz_loop import run_for_minutes
from test_sqlite_import import nsys, nvprof, small

import cuptiprof
from cuptiprof.errors import CuptiprofError

PAGE = 4096
VALUES: list[Any] = [
    None, -1, 0, 1, 1 << 31, 1 << 62, -(1 << 63), 1.5, float("inf"), float("-inf"), "", "x", "'", "\0", "1e999", "a" * 70_000,
    "\ud800".encode("utf-8", "surrogatepass"), b"\xff" * 9,
]  # fmt: skip


def sources(folder: Path) -> dict[str, bytes]:
    for name in ("new", "old", "nvprof"):
        (folder / name).mkdir()
    made = {
        "new": small(nsys(folder / "new" / "r.sqlite")),
        "old": small(nsys(folder / "old" / "r.sqlite", "1.0")),
        "nvprof": nvprof(folder / "nvprof" / "r.sqlite").done(),
    }
    return {name: path.read_bytes() for name, path in made.items()}


def damage_bytes(data: bytes, rng: random.Random) -> bytes:
    out = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 5, 20, 100))):
        at = rng.randrange(len(out))
        how = rng.random()
        if how < 0.45:
            out[at] = rng.randrange(256)
        elif how < 0.6:
            out[at : at + 8] = rng.choice((rng.randbytes(8), b"\xff" * 8))
        elif how < 0.7:
            del out[max(at, 1) :]
        elif how < 0.8:  # pages change places
            one, other = (rng.randrange(max(len(out) // PAGE, 1)) * PAGE for _ in range(2))
            out[one : one + PAGE], out[other : other + PAGE] = out[other : other + PAGE], out[one : one + PAGE]
        elif how < 0.9:  # the file's own header, and that of the list of tables
            out[at % 200 % len(out)] = rng.randrange(256)
        else:
            out[at] ^= 1 << rng.randrange(8)
    return bytes(out)


def damage_table(
    connection: sqlite3.Connection, tables: list[str], table: str, column: str, rng: random.Random
) -> None:
    how = rng.random()
    if how < 0.7:
        rows = f'SELECT rowid FROM "{table}" ORDER BY rowid LIMIT ?'
        change = f'UPDATE "{table}" SET "{column}" = ? WHERE rowid IN ({rows})'
        connection.execute(change, (rng.choice(VALUES), rng.choice((1, 3, 100_000))))
    elif how < 0.8 and len(tables) > 1:
        connection.execute(f'DROP TABLE "{table}"')
        tables.remove(table)
    elif how < 0.9:
        connection.execute(f'ALTER TABLE "{table}" RENAME COLUMN "{column}" TO "q{rng.randrange(1 << 30)}"')
    else:
        connection.execute(f'DELETE FROM "{table}"')


def damage_values(file: Path, rng: random.Random) -> None:
    """A database as good as before, of which tables and values are not what they should be."""
    connection = sqlite3.connect(file)
    try:
        tables = [
            name
            for (name,) in connection.execute(
                "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
            )
        ]
        for _ in range(rng.choice((1, 2, 5))):
            table = rng.choice(tables)
            column = rng.choice([row[1] for row in connection.execute(f'PRAGMA table_info("{table}")')])
            with contextlib.suppress(sqlite3.Error):  # it does not take every value in every place
                damage_table(connection, tables, table, column, rng)
        connection.commit()
    finally:
        connection.close()


def try_one(seed: int, given: dict[str, bytes], file: Path) -> bool:
    """Whether it was opened."""
    rng = random.Random(seed)
    data = given[rng.choice(list(given))]
    try:
        if rng.random() < 0.6:
            file.write_bytes(damage_bytes(data, rng))
        else:
            file.write_bytes(data)
            damage_values(file, rng)
        result = cuptiprof.open(file)
        assert str(result.overview()) and str(result.summary())
    except CuptiprofError as error:
        assert str(error), seed
        return False
    except Exception as error:
        raise AssertionError(f"seed {seed}: {type(error).__name__}: {error}") from error
    return True


@pytest.mark.parametrize("block", range(4))
def test_damaged_databases(block: int, tmp_path: Path) -> None:
    given = sources(tmp_path)
    opened = sum(try_one(seed, given, tmp_path / "d.sqlite") for seed in range(100 * block, 100 * block + 100))
    assert 20 < opened < 90


def prepare(folder: Path) -> Callable[[int], bool]:
    given = sources(folder)
    return lambda seed: try_one(seed, given, folder / "d.sqlite")


if __name__ == "__main__":
    run_for_minutes(__doc__, 4 << 30, prepare)
