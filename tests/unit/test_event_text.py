"""The native writer of trace events: columns in, JSON text out; and the stream that compresses it."""

from __future__ import annotations

import gzip
import json
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cuptiprof import _core
from cuptiprof.export.chrome.json_text import Events
from cuptiprof.export.output_stream import opened_output


def text_of(events: Events) -> str:
    return b"".join(text for _, text in events.pieces()).decode()


@pytest.mark.parametrize(
    ("dtype", "values"),
    [
        ("int64", [-(2**63), -1, 0, 2**63 - 1]),
        ("uint64", [0, 2**64 - 1]),
        ("int32", [-(2**31), 2**31 - 1]),
        ("uint32", [0, 2**32 - 1]),
        ("uint16", [65535]),
        ("uint8", [255]),
    ],
)
def test_integers_of_every_width(dtype: str, values: list[int]) -> None:
    text = text_of(Events(len(values)).number(",", np.array(values, dtype)))
    assert json.loads(f"[{text[1:]}]") == values


@given(st.lists(st.floats(), min_size=1, max_size=9))
def test_floats_read_back_the_same(values: list[float]) -> None:
    read = json.loads(f"[{text_of(Events(len(values)).number(',', np.array(values)))[1:]}]")
    for value, again in zip(values, read, strict=True):
        assert again is None if not np.isfinite(value) else (again == value and isinstance(again, float))


def test_what_is_not_shown_is_left_out() -> None:
    shown = np.array([True, False, True])
    events = Events(3).same("[").number("a", np.arange(3), shown).same("b", ~shown)
    events.text("c", np.array([1, 0, 7], np.uint8), ["x", "\ud800"], shown).same("]")
    assert text_of(events) == "[a0c\\ud800][b][a2c]"


def test_columns_that_are_none() -> None:
    text = _core.EventText()
    with pytest.raises(TypeError, match="float32"):
        text.add(b"", np.zeros(3, np.float32))
    with pytest.raises(TypeError, match="integers"):
        text.add(b"", np.zeros(3), "microseconds")
    with pytest.raises(TypeError, match="bool"):
        text.add(b"", np.zeros(3, np.int64), shown=np.zeros(3, np.int64))
    with pytest.raises(ValueError, match="dimension"):
        text.add(b"", np.zeros((3, 3), np.int64))
    with pytest.raises(ValueError, match="form"):
        text.add(b"", np.zeros(3, np.int64), "words")
    text.add(b"", np.zeros(3, np.int64))
    text.add(b"", np.zeros(2, np.int64))
    with pytest.raises(IndexError):
        text.rows(0, 3)
    assert text.rows(0, 2) == b"0000"
    strided = _core.EventText()
    strided.add(b",", np.arange(6)[::-2])
    assert strided.rows(0, 3) == b",5,3,1"


def test_columns_live_as_long_as_the_text() -> None:
    text = _core.EventText()
    for i in range(50):
        text.add(b",", np.full(1000, i))
    assert set(text.rows(0, 1000).decode().split("\n")) == {"".join(f",{i}" for i in range(50)) * 1000}


@pytest.mark.parametrize("sizes", [[], [0], [10], [1 << 20], [3 << 20, 1, 1 << 20, 5], [100_000] * 60])
def test_one_gzip_member_of_many_blocks(sizes: list[int], tmp_path: Path) -> None:
    random = np.random.default_rng(1)
    parts = [random.integers(97, 105, size, np.uint8).tobytes() for size in sizes]
    for name in ("a", "b"):
        with opened_output(tmp_path / name, True) as out:
            for part in parts:
                out.write(part)
    data = (tmp_path / "a").read_bytes()
    assert gzip.decompress(data) == b"".join(parts) and data == (tmp_path / "b").read_bytes()
    inflate = zlib.decompressobj(16 + zlib.MAX_WBITS)  # readers that know one member only
    assert inflate.decompress(data) == b"".join(parts) and inflate.eof and not inflate.unused_data


def test_what_fails_fails(tmp_path: Path) -> None:
    def stop(out: Any) -> None:
        out.write(b"x" * (2 << 20))
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), opened_output(tmp_path / "a", True) as out:
        stop(out)
