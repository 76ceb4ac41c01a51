"""Which files are traces is told by what is in them."""

from __future__ import annotations

import gzip
import json
import os
import threading
from pathlib import Path

import pyarrow as pa
import pytest

import cuptiprof
from cuptiprof.errors import ResultError
from cuptiprof.io import trace_file

EVENT = {"ph": "X", "cat": "kernel", "name": "gemm", "ts": 1, "dur": 2, "args": {"correlation": 1}}
TEXT = json.dumps({"traceEvents": [EVENT]}).encode()


def zstd(text: bytes) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as f:
        f.write(text)
    return bytes(sink.getvalue())


WRITTEN = {
    "plain": TEXT, "with space": b" \n\t" + TEXT, "with a mark": b"\xef\xbb\xbf" + TEXT, "a list": json.dumps([EVENT]).encode(),
    "gzip": gzip.compress(TEXT), "zstd": zstd(TEXT), "zstd in parts": zstd(TEXT[:30]) + zstd(TEXT[30:]),
}  # fmt: skip


@pytest.mark.parametrize("name", ["trace", "trace.json", "trace.json.gz", "trace.json.zst", "trace.pt.trace"])
@pytest.mark.parametrize("how", WRITTEN)
def test_by_content_whatever_it_is_called(how: str, name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(WRITTEN[how])
    assert list(cuptiprof.open(tmp_path / name).kernels["name"]) == ["gemm"]


@pytest.mark.parametrize(
    "content,message",
    [
        (b"", "neither a saved run"),
        (b"SQLite format 3\0", "truncated or damaged SQLite database"),
        (b"print('hello')", "neither a saved run"),
        (b"{not json", "not a JSON trace"),
        (zstd(TEXT)[:-9], "truncated or damaged Zstandard"),
        (b"\x28\xb5\x2f\xfd" + bytes(range(50)), "truncated or damaged Zstandard"),
        (gzip.compress(TEXT)[:-9], "truncated or damaged gzip"),
        (gzip.compress(b"text"), "not a JSON trace"),
    ],
)
@pytest.mark.parametrize("name", ["trace", "trace.json"])
def test_what_is_no_trace(name: str, content: bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ResultError, match=message):
        cuptiprof.open(tmp_path / name)


@pytest.mark.parametrize("how", ["gzip", "zstd"])
def test_a_small_file_that_would_be_huge(how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace_file, "ALWAYS_ALLOWED", 1 << 20)
    text = b"[" + b" " * (4 << 20) + b"]"
    (tmp_path / "bomb").write_bytes(zstd(text) if how == "zstd" else gzip.compress(text))
    with pytest.raises(ResultError, match="decompressed"):
        cuptiprof.open(tmp_path / "bomb")


def test_through_a_pipe(tmp_path: Path) -> None:
    """It has no size, and can be read only once."""
    pipe = tmp_path / "trace.json.gz"
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_bytes(gzip.compress(TEXT)))
    writer.start()
    assert list(cuptiprof.open(pipe).kernels["name"]) == ["gemm"]
    writer.join()
