"""Dumps of PyTorch's flight recorder: what torch wrote is read, what somebody else wrote does no harm."""

from __future__ import annotations

import os
import pickle
import random
import struct
from pathlib import Path
from typing import Any

import pytest
from dump_entries import dump, entry, write

from cuptiprof.errors import ResultError
from cuptiprof.io import plain_pickle
from cuptiprof.io.collective_dump import parse_collective_dump, read_collective_dumps
from cuptiprof.io.plain_pickle import read_plain_pickle

DATA = Path(__file__).parents[1] / "data" / "collective-dumps"
OF_TORCH = (DATA / "torch-2.13-gloo_0").read_bytes()


def test_what_torch_wrote() -> None:
    assert read_plain_pickle(OF_TORCH, "x") == pickle.loads(OF_TORCH)
    (of_pickle,) = read_collective_dumps(DATA / "torch-2.13-gloo_0")
    (of_json,) = read_collective_dumps([DATA / "torch-2.13-gloo_0.json"])
    assert of_pickle.rank == of_json.rank == 0 and of_pickle.version == of_json.version == "2.10"
    said = [(e.operation, e.process_group[1], e.collective_seq_id, e.input_sizes) for e in of_pickle.entries]
    assert said == [("all_reduce", "default_pg", n, ((4, 5),)) for n in (1, 2, 3)] + [("broadcast", "tp", 1, ((7,),))]
    for a, b in zip(of_pickle.entries, of_json.entries, strict=True):
        assert a.frames and not b.frames and a.is_done and a.state == "scheduled"
        assert (a.profiling_name, a.time_created_ns, a.input_dtypes) == (
            b.profiling_name,
            b.time_created_ns,
            b.input_dtypes,
        )


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_plain_values_of_python(protocol: int) -> None:
    shared = [1, "a"]
    for value in (
        {"a": [1, 255, 256, 65536, -1, -(2**63), 2**63 - 1, 1.5, float("inf"), True, False, None, "ü\U0001f600", ""]},
        [(), (1,), (1, 2), (1, 2, 3), (1, 2, 3, 4), [], {}], [shared, shared, (shared, {"k": shared})], "x" * 300,
    ):  # fmt: skip
        if protocol < 4 or value != "x" * 300:
            assert read_plain_pickle(pickle.dumps(value, protocol), "x") == value


class Evil:
    def __reduce__(self) -> Any:
        return os.system, ("touch /tmp/cuptiprof-was-here",)


def _shared(levels: int) -> bytes:
    """A list of twice the list of twice the list: values without end in a few bytes."""
    return (
        b"\x80\x02]q\x00"
        + b"".join(b"](h" + bytes([i]) + b"h" + bytes([i]) + b"eq" + bytes([i + 1]) for i in range(levels))
        + b"."
    )


@pytest.mark.parametrize(
    "data",
    [
        pickle.dumps(Evil()), pickle.dumps(Evil(), 0), pickle.dumps({"a": os.getcwd}), pickle.dumps({1, 2}), pickle.dumps(b"bytes", 4),
        pickle.dumps(2**200), pickle.dumps({1: 2}), pickle.dumps(DATA), b"cos\nsystem\n(S'true'\ntR.", b"\x80\x02P1\n.", b"\x80\x02\x82\x01.",
        b"", b"\x80", b"\x80\x02", b"\x80\x02.", b"\x80\x02(.", b"\x80\x02NN.", b"\x80\x02h\x05.", b"\x80\x02e.", b"\x80\x02N(e.",
        b"\x80\x02X\xff\xff\xff\xff", b"\x80\x02r\xff\xff\xff\xff.", b"\x80\x02]q\x00h\x00a.", b"\x80\x02]q\x00]q\x01h\x00ah\x00h\x01a.",
        b"\x80\x02}(K\x01u.", b"\x80\x02}(X\x01\x00\x00\x00au.", b"\x80\x02](" + b"(" * 100_000 + b".", b"\x80\x07N.", _shared(60),
    ],
)  # fmt: skip
def test_what_is_no_plain_pickle(data: bytes) -> None:
    with pytest.raises(ResultError):
        read_plain_pickle(data, "x")
    assert not Path("/tmp/cuptiprof-was-here").exists()


def test_depth_and_memos_take_no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plain_pickle, "MOST_VALUES", 50_000)
    deep = b"\x80\x02" + b"]" * 20_000 + b"a" * 19_999 + b"."
    with pytest.raises(ResultError):
        parse_collective_dump(deep, 0)
    assert read_plain_pickle(b"\x80\x02Nr\xff\xff\xff\xff.", "x") is None  # a memo at 4 billion
    wide = b"\x80\x02](" + b"N" * 50_001 + b"e."
    with pytest.raises(ResultError, match="values"):
        read_plain_pickle(wide, "x")


@pytest.mark.parametrize(
    "change",
    [
        {"version": "3.0"}, {"version": 2}, {"version": "2.x" * 1000}, {"entries": {}}, {"entries": [1]}, {"pg_config": []},
        {"pg_config": {"0": {"desc": "d", "ranks": "__import__('os').system('true')"}}}, {"pg_config": {"0": {"desc": "d", "ranks": "[-1]"}}},
        {"pg_config": {"0": {"desc": "d", "ranks": "[" * 100_000}}}, {"entries": [{**entry(1), "state": "on fire"}]},
        {"entries": [{**entry(1), "collective_seq_id": -1}]}, {"entries": [{**entry(1), "input_sizes": [[2**62] * 1000]}]},
        {"entries": [{**entry(1), "process_group": ["a"]}]}, {"entries": [{**entry(1), "record_id": 2**63}]},
        {"entries": [{**entry(1), "frames": [{"name": 1, "filename": "a", "line": 1}]}]}, {"entries": [{"record_id": 1}]},
    ],
)  # fmt: skip
def test_what_is_no_dump(change: dict[str, Any], tmp_path: Path) -> None:
    value = {**dump([entry(1)], {"0": ("default_pg", [0, 1])}), **change}
    for as_json in (False, True):
        with pytest.raises(ResultError) as refused:
            read_collective_dumps(write(tmp_path / str(as_json), {0: value}, as_json=as_json))
        assert len(str(refused.value)) < 2000
    (tmp_path / "empty").mkdir()
    with pytest.raises(ResultError, match="no dumps"):
        read_collective_dumps(tmp_path / "empty")
    with pytest.raises(ResultError, match="which rank"):
        read_collective_dumps([tmp_path / "empty"])
    with pytest.raises(ResultError, match="another dump of rank 0"):
        read_collective_dumps([DATA / "torch-2.13-gloo_0", DATA / "torch-2.13-gloo_0.json"])


def test_any_bytes() -> None:
    """Bytes changed, cut, doubled: an error of ours or a dump, in time that is bounded."""
    rng = random.Random(18)
    of_json = (DATA / "torch-2.13-gloo_0.json").read_bytes()
    refused = 0
    for i in range(600):
        data = bytearray(of_json if i % 5 == 0 else OF_TORCH)
        for _ in range(rng.choice([1, 1, 2, 8])):
            at = rng.randrange(len(data))
            kind = rng.randrange(4)
            if kind == 0:
                data[at] = rng.randrange(256)
            elif kind == 1:
                del data[at : at + rng.choice([1, 4, 64])]
            elif kind == 2:
                data[at:at] = data[at : at + rng.choice([1, 5, 200])]
            else:
                data[at : at + 4] = struct.pack("<I", rng.choice([0, 1, 2**31, 2**32 - 1]))
        try:
            parse_collective_dump(bytes(data), 0)
        except ResultError:
            refused += 1
    assert 100 < refused < 600
