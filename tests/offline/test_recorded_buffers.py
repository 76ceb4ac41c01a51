"""Recorded fixtures: NVIDIA's own library walks the buffers, our decoder decodes them, and the columns must be the values
that were recorded beside (read by other code). The same for counter images, where a library can evaluate them."""

from __future__ import annotations

import gzip
import importlib
import json
import random
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from nvidia_libraries import cupti_13_0  # noqa: F401  (a fixture)

from cuptiprof import _core
from cuptiprof.data.result import Result, from_native
from cuptiprof.errors import CuptiprofError
from cuptiprof.sim.sim_device import SimDevice, library_path

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = sorted(p.parent for p in (ROOT / "tests" / "data").glob("*-cupti*/fixture.json"))
LIMIT_BYTES = 2 << 20


def benchmark(name: str) -> Any:
    """A module of the checkout's benchmarks. The path goes last: the package itself must stay the installed one."""
    if str(ROOT) not in sys.path:
        sys.path.append(str(ROOT))
    return importlib.import_module(f"benchmarks.{name}")


def load(folder: Path) -> tuple[dict[str, Any], list[bytes], list[bytes]]:
    data = json.loads((folder / "fixture.json").read_text())
    raw = gzip.decompress((folder / "buffers.bin.gz").read_bytes())
    buffers, at = [], 0
    for size in data["buffers"]["sizes"]:
        buffers.append(raw[at : at + size])
        at += size
    assert at == len(raw)
    return data, buffers, [s.encode() for s in data["buffers"]["strings"]]


@pytest.fixture(params=FOLDERS, ids=lambda p: p.name)
def folder(request: pytest.FixtureRequest) -> Path:
    return Path(request.param)


@pytest.fixture(params=["NVIDIA's library", "stand-in"])
def library(request: pytest.FixtureRequest, cupti_13_0: str) -> Any:  # noqa: F811
    """What walks the records. Both know the layout of CUDA 13.0."""
    if request.param == "stand-in":
        SimDevice().reset()
        return _core.load_cupti(str(library_path()), "test", True)
    return _core.load_cupti(cupti_13_0, "test")


def test_there_are_fixtures_and_they_are_small() -> None:
    assert FOLDERS
    for f in FOLDERS:
        assert sum(p.stat().st_size for p in f.iterdir()) <= LIMIT_BYTES
        data = json.loads((f / "fixture.json").read_text())
        assert f.name == f"{'sim' if data['simulated'] else data['chip']}-cupti{data['cupti_version']}"


def test_our_decoder_gives_the_recorded_values(folder: Path, library: Any) -> None:
    data, buffers, strings = load(folder)
    if data["cupti_version"] // 100 != 1300:
        pytest.skip(f"laid out by CUPTI {data['cupti_version']}; the library here reads 13.0")
    store, losses = _core.decode_recorded(library, buffers, strings)
    result = Result(from_native(store.tables(), store.strings()), {}, losses)
    recorded = data["buffers"]["values"]
    assert len(recorded["kernels"]["name"]) >= 20 and len(recorded["memcpys"]["bytes"]) >= 5
    for table, columns in recorded.items():
        rows = getattr(result, table)
        for column, values in columns.items():
            assert list(rows[column]) == values, (table, column)
    lost = {k: v for k, v in losses.items() if v}
    assert lost == {}
    assert {"context", "correlation_id"} <= set(result.kernels.column_names)


def test_the_simulated_fixture_says_what_was_run() -> None:
    """53 kernels: 48 launches of three names and a graph of five nodes; 12 copies; known by the script, not by a decoder."""
    data, _, _ = load(ROOT / "tests" / "data" / "sim-cupti130001")
    kernels = data["buffers"]["values"]["kernels"]
    names, counts = np.unique(kernels["name"], return_counts=True)
    assert dict(zip(names.tolist(), counts.tolist(), strict=True)) == {
        "_Z4nodePf": 5, "_Z6scale0Pfi": 16, "_Z6scale1Pfi": 16, "_Z6scale2Pfi": 16,
    }  # fmt: skip
    assert sum(1 for n in kernels["graph_node_id"] if n) == 5
    assert data["buffers"]["values"]["memcpys"]["bytes"] == [4096 * (i + 1) for i in range(12)]
    assert data["buffers"]["values"]["memsets"]["bytes"] == [65536]


def test_recording_again_gives_the_same_columns(tmp_path: Path) -> None:
    """The recorder itself, end to end on the stand-in; times come from its virtual clock."""
    again = benchmark("record_fixtures").record("sim", tmp_path)
    assert again.name == "sim-cupti130001"
    new, buffers, strings = load(again)
    old, _, _ = load(ROOT / "tests" / "data" / again.name)
    assert new["not_recorded"] == {}
    for table in ("kernels", "memcpys", "memsets"):
        for column, values in old["buffers"]["values"][table].items():
            if column not in ("start", "end", "correlation_id", "graph_node_id"):
                assert new["buffers"]["values"][table][column] == values
    SimDevice().reset()
    library = _core.load_cupti(str(library_path()), "test", True)
    store, _ = _core.decode_recorded(library, buffers, strings)
    assert len(store.tables()["kernels"]["start"]) == 53


def test_counter_images_evaluate_to_the_recorded_values(folder: Path, cupti_13_0: str) -> None:  # noqa: F811
    """On the stand-in's own library for a simulated image; on NVIDIA's, with no GPU, for one recorded on a GPU."""
    data = json.loads((folder / "fixture.json").read_text())
    objects = benchmark("record_counters")._objects()
    for part, file, kind in (("ranges", "counter_data", objects.RANGE), ("samples", "pm_sampling", objects.SAMPLING)):
        if part not in data:
            assert part in data["not_recorded"]
            continue
        image = gzip.decompress((folder / f"{file}.bin.gz").read_bytes())
        assert len(image) == data[part]["bytes"]
        raw = (objects.c_uint8 * len(image)).from_buffer_copy(image)
        api = benchmark("record_counters")._api("sim" if data["simulated"] else "offline", cupti_13_0)
        host = objects.Host(api, data["chip"], kind)
        recorded = data[part]["values"]
        assert recorded and any(any(v) for v in recorded)
        for i, values in enumerate(recorded):
            assert host.evaluate(raw, i, data[part]["metrics"]) == pytest.approx(values, rel=1e-12)


def test_what_cannot_have_been_recorded_is_refused(library: Any) -> None:
    _, buffers, strings = load(ROOT / "tests" / "data" / "sim-cupti130001")
    with pytest.raises(CuptiprofError, match="string"):
        _core.decode_recorded(library, buffers, strings[:1])
    kernel = next(at for kind, at in library.record_kinds(buffers[0], len(buffers[0])) if kind == 10)
    changed = bytearray(buffers[0])
    changed[kernel + 104 : kernel + 112] = (0x7F00_1234_5678).to_bytes(8, "little")  # an address instead of an index
    with pytest.raises(CuptiprofError, match="string"):
        _core.decode_recorded(library, [bytes(changed)], strings)
    changed = bytearray(buffers[0])
    changed[kernel : kernel + 4] = (49).to_bytes(4, "little")  # MEMORY2: has pointers of its own
    with pytest.raises(CuptiprofError, match="kind 49"):
        _core.decode_recorded(library, [bytes(changed)], strings)


def test_damaged_buffers_never_crash(library: Any) -> None:
    """Bytes changed at random and buffers cut short: columns or an error, and no address out of the file is followed."""
    _, buffers, strings = load(ROOT / "tests" / "data" / "sim-cupti130001")
    rng = random.Random(3)
    refused = decoded = 0
    for _ in range(400):
        damaged = bytearray(buffers[0][: rng.randrange(1, len(buffers[0]) + 1)])
        for _ in range(rng.randrange(0, 12)):
            damaged[rng.randrange(len(damaged))] = rng.randrange(256)
        try:
            _core.decode_recorded(library, [bytes(damaged)], strings)
            decoded += 1
        except CuptiprofError:
            refused += 1
    assert refused > 20 and decoded > 20
