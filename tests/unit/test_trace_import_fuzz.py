"""Damaged trace files: opening one gives a result or an error of ours, and what was opened can be shown, saved and exported.

As a program it goes on for as long as it is told: ``PYTHONPATH=tests python tests/unit/test_trace_import_fuzz.py --minutes 10``, each file in a limit of
time, all of them in a limit of memory.
"""

from __future__ import annotations

import copy
import gzip
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import DATA, trace_path
from fuzz_loop import run_for_minutes

import cuptiprof
from cuptiprof.errors import CuptiprofError

# Small ones, so that 500 of them take seconds.
SOURCES = ["triton-a100", "event-sync", "event-sync-streams", "simple-add", "alexnet-a100"]
VALUES: list[Any] = [
    None, True, "", "x", "\ud800", "\0", "NaN", "-1", "1e999", [], [[]], {}, {"a": {}}, [1, "x", None], 0, -1, 1, 2**31, 2**32,
    2**63, 2**64, -(2**63), 10**30, 10**400, -(10**400), 0.5, -0.0, 1e300, float("nan"), float("inf"), "1" * 5000, "Memcpy (x -> y)",
]  # fmt: skip
KEYS = ["ts", "dur", "ph", "cat", "name", "pid", "tid", "args", "id"]
CATEGORIES = [
    "kernel",
    "gpu_memcpy",
    "gpu_memset",
    "cuda_runtime",
    "cuda_sync",
    "user_annotation",
    "cpu_op",
    "overhead",
    "fwdbwd",
    "python_function",
    "gpu_user_annotation",
    "cuda_profiler_range",
    "mtia_ccp_events",
    "mtia_runtime",
]


DEVICES = ["mi250-train", "cpu-only", "mtia-inference"]
ARGUMENTS = ["Call stack", "Input Dims", "Sequence number", "Bytes", "grid", "direction", "correlation", "External id"]


def text_of(name: str) -> bytes:
    path = DATA / "devices" / f"{name}.json.gz" if name in DEVICES else trace_path(name)
    return gzip.decompress(path.read_bytes())


def damage_bytes(data: bytes, rng: random.Random) -> bytes:
    """Bits flipped, pieces cut out, doubled or put in."""
    out = bytearray(data)
    for _ in range(rng.randint(1, 6)):
        if not out:
            break
        at = rng.randrange(len(out))
        piece = out[at : at + rng.randint(1, 400)]
        kind = rng.randrange(5)
        if kind == 0:
            out[at] ^= 1 << rng.randrange(8)
        elif kind == 1:
            del out[at : at + len(piece)]
        elif kind == 2:
            out[at:at] = piece
        elif kind == 3:
            out[at:at] = rng.choice(
                [b"null", b"1e999", b"[", b"{", b'"', b"\xff\xfe", b"\x00", b"-", b"," * 50, b"NaN"]
            )
        else:
            del out[at:]
    return bytes(out)


def damage_values(data: bytes, rng: random.Random) -> bytes:
    """Valid JSON of the wrong kind, size or order."""
    trace = json.loads(data)
    events = trace["traceEvents"]
    for _ in range(rng.randint(1, 40)):
        kind = rng.randrange(10)
        value = copy.deepcopy(rng.choice(VALUES))
        event = rng.choice(events) if events else {}
        if not isinstance(event, dict):
            continue
        if kind <= 2:
            event[rng.choice(KEYS)] = value
        elif kind <= 4 and isinstance(event.get("args"), dict) and event["args"]:
            event["args"][rng.choice(sorted(event["args"]))] = value
        elif kind == 5:
            event["cat"] = rng.choice(CATEGORIES)
        elif kind == 6:
            trace[rng.choice([*trace, "baseTimeNanoseconds", "deviceProperties", "distributedInfo"])] = value
            events = trace["traceEvents"] if isinstance(trace["traceEvents"], list) else []
        elif kind == 7:
            events.append(value)
        elif kind == 8 and isinstance(event.get("args"), dict):
            event["args"][rng.choice(ARGUMENTS)] = value
        else:
            rng.shuffle(events)
    return json.dumps(trace, ensure_ascii=True).encode()


def damage_gzip(data: bytes, rng: random.Random) -> bytes:
    return damage_bytes(gzip.compress(data, 1), rng)


def use(result: cuptiprof.Result, folder: Path) -> None:
    """What one does with a result; only our errors may come."""
    for view in ("summary", "regions", "gpu-trace", "api-trace"):
        try:
            str(result.report(view))
        except CuptiprofError as error:
            assert str(error)
    for name in ("out.json", "run"):
        try:
            result.save(folder / name, overwrite=True) if name == "run" else result.export(
                folder / name, overwrite=True
            )
            again = cuptiprof.open(folder / name)
            # Work of no known times (0 and 0) is in no Chrome trace.
            assert len(again.kernels) == len((result if name == "run" else result.timed()).kernels)
        except CuptiprofError as error:
            assert str(error)


def damaged(seed: int, sources: dict[str, bytes]) -> tuple[str, bytes]:
    """What was done, and the file."""
    rng = random.Random(seed)
    # The larger files only now and then.
    small = [*SOURCES[:3], "mi250-train", "cpu-only"]
    source = sources[rng.choice(small if rng.random() < 0.85 else [*SOURCES[3:], "mtia-inference"])]
    damage = rng.choice([damage_bytes, damage_values, damage_values, damage_values, damage_gzip])
    return damage.__name__, damage(source, rng)


def try_one(seed: int, sources: dict[str, bytes], folder: Path, *, used: bool) -> bool:
    """Whether it was opened."""
    how, data = damaged(seed, sources)
    file = folder / "t.json"
    file.write_bytes(data)
    try:
        result = cuptiprof.open(file)
    except CuptiprofError as error:
        assert str(error), seed
        return False
    except Exception as error:
        raise AssertionError(f"seed {seed}, {how}: {type(error).__name__}: {error}") from error
    if used:
        try:
            use(result, folder)
        except Exception as error:
            raise AssertionError(f"seed {seed}, {how}: {type(error).__name__}: {error}") from error
    return True


@pytest.mark.parametrize("block", range(10))
def test_damaged_traces(block: int, tmp_path: Path) -> None:
    sources = {name: text_of(name) for name in SOURCES + DEVICES}
    opened = 0
    for seed in range(50 * block, 50 * block + 50):
        opened += try_one(seed, sources, tmp_path, used=opened % 3 == 2)
    assert opened > 10


def prepare(folder: Path) -> Callable[[int], bool]:
    sources = {name: text_of(name) for name in SOURCES + DEVICES}
    return lambda seed: try_one(seed, sources, folder, used=seed % 10 == 0)


if __name__ == "__main__":
    run_for_minutes(__doc__, 4 << 30, prepare)
