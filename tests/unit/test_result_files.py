"""Tables, saved runs, imported traces, exports: everything that is read back equals what was written."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from conftest import trace_path
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import cuptiprof
from cuptiprof.data import enums
from cuptiprof.data.activities import DEFAULT, KINDS
from cuptiprof.data.result import Losses, Result
from cuptiprof.data.tables import Strings, Table, merge, schema
from cuptiprof.errors import ResultError
from cuptiprof.io.kineto.trace_values import to_ns

TRACES = ["alexnet-a100", "triton-a100", "counters-a100", "train-v100"]


def same(a: Result, b: Result, *, skip: tuple[str, ...] = ()) -> None:
    for name in schema():
        x, y = a.tables[name], b.tables[name]
        assert len(x) == len(y), name
        for column in x.column_names:
            if column in skip:
                continue
            left, right = x[column], y[column]
            equal = (left == right) | ((left != left) & (right != right))
            assert equal.all(), f"{name}.{column}"


def test_columns_are_views() -> None:
    strings = Strings()
    start = np.arange(3, dtype=np.int64)
    table = Table.from_columns("memsets", {"start": start, "end": start + 5, "bytes": [1, 2, 3]}, strings)
    assert table["start"] is table["start"]
    assert list(table["duration"]) == [5, 5, 5]
    assert table.row(1)["bytes"] == 2
    assert len(table.where(np.array([True, False, True]))) == 2
    with pytest.raises(KeyError, match="memsets has no column"):
        table["nonsense"]
    with pytest.raises(ResultError, match="no column"):
        Table.from_columns("memsets", {"x": [1]}, strings)
    with pytest.raises(ResultError, match="do not fit"):
        Table.from_columns("memsets", {"value": [-1]}, strings)


def test_native_columns_are_not_copied() -> None:
    from cuptiprof.sim.sim_device import SimDevice

    with cuptiprof.profile(device="sim") as prof:
        SimDevice().launch("k", count=10)
    kernels = prof.result().kernels
    assert np.shares_memory(kernels["start"], kernels.codes("start"))
    assert not kernels["start"].flags.owndata and not kernels["start"].flags.writeable
    column = kernels["start"]
    del prof, kernels
    assert (column > 0).all()  # the array keeps the memory alive


def test_losses() -> None:
    assert not Losses() and Losses().line() == ""
    assert not Losses({"filter_rejected": 5})
    assert Losses({"cupti_dropped": 1500}).line() == "Lost: 1,500 cupti_dropped"
    with pytest.raises(ResultError):
        Losses({"nonsense": 1})


@pytest.mark.parametrize("text,ns", [("1712195495505583.123", 1712195495505583123), ("0.928", 928), ("-1.5", -1500), (7, 7000), ("3", 3000), ("1e3", 1000000)])  # fmt: skip
def test_times_are_exact(text: str, ns: int) -> None:
    assert to_ns(text) == ns


@pytest.mark.parametrize("name", TRACES)
def test_import_agrees_with_the_json(name: str) -> None:
    """Against plain loops over the file, not the importer's own code."""
    events = json.loads(gzip.decompress(trace_path(name).read_bytes()), parse_float=str)["traceEvents"]
    r = cuptiprof.open(trace_path(name))
    for category, table in (("kernel", r.kernels), ("gpu_memcpy", r.memcpys), ("gpu_memset", r.memsets), ("cuda_runtime", None), ("user_annotation", r.regions)):  # fmt: skip
        raw = [e for e in events if e.get("cat") == category and e["ph"] == "X"]
        if table is None:
            driver = [e for e in events if e.get("cat") == "cuda_driver"]
            assert len(r.api_calls) == len(raw) + len(driver)
            continue
        assert len(table) == len(raw)
        assert sorted(to_ns(e["dur"]) for e in raw) == sorted(table["duration"].tolist())
        assert sorted(to_ns(e["ts"]) for e in raw) == sorted(table["start"].tolist())
    kernels = [e for e in events if e.get("cat") == "kernel"]
    assert [e["name"] for e in kernels] == list(r.kernels["name"])
    assert [e["args"]["grid"][0] for e in kernels] == r.kernels["grid_x"].tolist()
    assert not r.losses


def test_backward_kernels_belong_to_the_backward_region() -> None:
    r = cuptiprof.open(trace_path("train-v100"))
    assert len(r.kernels) == 4350
    assert not (r.kernels["region"] == "").any()
    backward = [("backward" in x) for x in r.kernels["region"]]
    assert sum(backward) == 2810


@pytest.mark.parametrize("name", TRACES)
def test_save_and_open(name: str, tmp_path: Path) -> None:
    r = cuptiprof.open(trace_path(name))
    seen: list[tuple[int, int]] = []
    r.save(tmp_path / "run.cuptiprof", progress=lambda done, total: seen.append((done, total)))
    assert seen and seen[-1][0] == seen[-1][1]
    again = cuptiprof.open(tmp_path / "run.cuptiprof")
    same(r, again)
    assert again.metadata == r.metadata and dict(again.losses) == dict(r.losses)
    assert str(again.summary()) == str(r.summary())
    with pytest.raises(ResultError, match="exists"):
        r.save(tmp_path / "run.cuptiprof")
    r.save(tmp_path / "run.cuptiprof", overwrite=True)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["run.cuptiprof"]


@pytest.mark.parametrize("name", TRACES)
@pytest.mark.parametrize("suffix", [".json", ".json.gz"])
def test_export_and_import(name: str, suffix: str, tmp_path: Path) -> None:
    r = cuptiprof.open(trace_path(name))
    r.export(tmp_path / f"t{suffix}")
    again = cuptiprof.open(tmp_path / f"t{suffix}")
    for table in ("kernels", "memcpys", "memsets", "api_calls", "regions", "synchronizations"):
        x, y = r.tables[table], again.tables[table]
        assert len(x) == len(y)
        for column in (
            "start",
            "end",
            "correlation_id",
            "region",
            "name",
            "stream",
            "thread",
            "bytes",
            "path",
            "grid_x",
            "bandwidth",
        ):
            if column in x and not (table == "regions" and column == "bytes"):
                left, right = x[column], y[column]
                if column in ("start", "end"):  # the file counts from another time; as Unix time they are the same
                    left, right = (v + run.clock_to_unix(0) for v, run in ((left, r), (right, again)))
                assert sorted(left.tolist()) == sorted(right.tolist()), (table, column)
    opened = gzip.open if suffix.endswith("gz") else open
    text = opened(tmp_path / f"t{suffix}", "rt").read()
    assert '"rank": 0' in text
    flows = [e for e in json.loads(text)["traceEvents"] if e.get("cat") == "ac2g"]
    assert {e["id"] for e in flows if e["ph"] == "s"} == {
        int(c) for c in np.intersect1d(r.api_calls["correlation_id"], np.concatenate([r.kernels["correlation_id"], r.memcpys["correlation_id"], r.memsets["correlation_id"]]))
    }  # fmt: skip


def damaged(tmp_path: Path, damage: Callable[[Path], None]) -> Path:
    run = tmp_path / "run.cuptiprof"
    cuptiprof.open(trace_path("alexnet-a100")).save(run)
    damage(run)
    return run


def edit(change: Callable[[dict], None]) -> Callable[[Path], None]:  # type: ignore[type-arg]
    def apply(run: Path) -> None:
        data = json.loads((run / "run.json").read_text())
        change(data)
        (run / "run.json").write_text(json.dumps(data))

    return apply


def part(run: Path) -> Path:
    return run / "kernels" / "rank=0" / "part-0.parquet"


@pytest.mark.parametrize(
    "damage,message",
    [
        (lambda run: (run / "run.json").unlink(), "not a saved run"),
        (lambda run: (run / "run.json").write_text("{"), "damaged"),
        (lambda run: (run / "run.json").write_text("[]"), "not written by"),
        (edit(lambda d: d.update(format=99)), "format 99"),
        (edit(lambda d: d["rows"].update(kernels=10**6)), "run.json counts"),
        (edit(lambda d: d["rows"].update(kernels=-1)), r"Expected `int` >= 0 - at `\$\.rows"),
        (edit(lambda d: d["losses"].update(cupti_dropped="x")), r"Expected `int`, got `str` - at `\$\.losses"),
        (edit(lambda d: d.pop("metadata")), "missing required field `metadata`"),
        (lambda run: part(run).unlink(), "missing"),
        (lambda run: part(run).write_bytes(part(run).read_bytes()[:500]), "damaged"),
        (lambda run: part(run).write_text("PAR1 nonsense"), "damaged"),
    ],
)
def test_damaged_runs(damage: Callable[[Path], None], message: str, tmp_path: Path) -> None:
    with pytest.raises(ResultError, match=message):
        cuptiprof.open(damaged(tmp_path, damage))


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[1, 2", b'"text"', b'{"traceEvents": 3}', b"\x1f\x8b\x08\x00garbage", b"[" * 100_000],
)
def test_damaged_traces(content: bytes, tmp_path: Path) -> None:
    file = tmp_path / "t.json"
    file.write_bytes(content)
    with pytest.raises(ResultError):
        cuptiprof.open(file)


def test_truncated_gzip(tmp_path: Path) -> None:
    file = tmp_path / "t.json.gz"
    file.write_bytes(trace_path("alexnet-a100").read_bytes()[:5000])
    with pytest.raises(ResultError, match="truncated"):
        cuptiprof.open(file)


def test_nonsense_events_are_counted(tmp_path: Path) -> None:
    events = [
        {"ph": "X", "cat": "kernel", "name": "good", "ts": 1, "dur": 2, "args": {"correlation": 1}},
        {"ph": "X", "cat": "kernel", "name": "no time"},
        {"ph": "X", "cat": "kernel", "name": "negative", "ts": 5, "dur": -2},
        {"ph": "X", "cat": "kernel", "name": "text", "ts": "soon", "dur": 1},
        {"ph": "X", "cat": "kernel", "name": "args", "ts": 1, "dur": 1, "args": [1]},
        "not an event",
    ]
    file = tmp_path / "t.json"
    file.write_text(json.dumps({"traceEvents": events}))
    r = cuptiprof.open(file)
    assert (len(r.kernels), r.losses["unknown_records"]) == (1, 5)


def test_one_damaged_event_does_not_cost_the_others(tmp_path: Path) -> None:
    """Values that no column holds: the event is counted, the rest is there. Half a surrogate pair is written out on saving."""
    good = {"ph": "X", "cat": "kernel", "name": "k\ud800", "ts": 1, "dur": 2, "args": {"correlation": 1, "stream": 7}}
    bad = [
        {"stream": 2**40},
        {"device": -1},
        {"correlation": 10**30},
        {"grid": [2**33, 1, 1]},
        {"graph node id": 2**64},
    ]
    events = [good, *({**good, "args": {**good["args"], **args}} for args in bad), {**good, "ts": 10**17}]
    devices = [{"id": 0, "name": "A"}, {"id": 2**50, "name": "B"}, {"id": 1, "numSms": -4}]
    file = tmp_path / "t.json"
    file.write_text(
        json.dumps({"traceEvents": events, "deviceProperties": devices, "distributedInfo": {"rank": 10**300}})
    )
    r = cuptiprof.open(file)
    assert (len(r.kernels), r.losses["unknown_records"]) == (1, 8) and list(r.devices["name"]) == ["A"]
    r.save(tmp_path / "run")
    assert list(cuptiprof.open(tmp_path / "run").kernels["name"]) == ["k\\ud800"]


def test_other_paths(tmp_path: Path) -> None:
    with pytest.raises(ResultError, match="no such"):
        cuptiprof.open(tmp_path / "nothing")
    (tmp_path / "x.txt").write_text("x")
    with pytest.raises(ResultError, match="neither"):
        cuptiprof.open(tmp_path / "x.txt")
    r = cuptiprof.open(trace_path("triton-a100"))
    with pytest.raises(ResultError, match="format"):
        r.export(tmp_path / "x.bin")
    with pytest.raises(ResultError, match="cannot write"):
        r.export(tmp_path / "no" / "folder.json")
    with pytest.raises(ResultError, match="cannot write"):
        r.save(tmp_path / "no" / "folder")


def test_a_full_disk_leaves_the_old_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import errno

    import pyarrow.parquet as pq

    r = cuptiprof.open(trace_path("triton-a100"))
    r.save(tmp_path / "run")

    def full(*args: object, **kwargs: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(pq, "write_table", full)
    with pytest.raises(ResultError, match="No space left"):
        r.save(tmp_path / "run", overwrite=True)
    assert [p.name for p in tmp_path.iterdir()] == ["run"]
    same(r, cuptiprof.open(tmp_path / "run"))


def test_arrow_pandas_polars() -> None:
    import pandas as pd
    import polars as pl
    import pyarrow as pa

    t = cuptiprof.open(trace_path("alexnet-a100")).kernels
    arrow = pa.RecordBatchReader.from_stream(t).read_all()
    assert arrow.column("start").to_pylist() == t["start"].tolist()
    assert arrow.column("name").to_pylist() == list(t["name"])
    frame = t.to_pandas()
    assert isinstance(frame, pd.DataFrame) and list(frame["name"]) == list(t["name"])
    polars = t.to_polars()
    assert isinstance(polars, pl.DataFrame) and polars["end"].to_list() == t["end"].tolist()


text = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
rows = st.lists(
    st.tuples(st.integers(1, 2**62), st.integers(0, 2**31), text, text, st.integers(1, 2**31 - 1)), max_size=30
)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows)
def test_any_run_survives_saving(tmp_path: Path, rows: list[tuple[int, int, str, str, int]]) -> None:
    strings = Strings()
    configs = Table.from_columns("launch_configs", {"grid_x": [r[4] for r in rows]}, strings)
    kernels = Table.from_columns(
        "kernels",
        {
            "start": [r[0] for r in rows],
            "end": [r[0] + r[1] for r in rows],
            "name": [r[2] for r in rows],
            "region": [r[3] for r in rows],
            "config": list(range(len(rows))),
        },
        strings,
        configs,
    )
    r = Result({"kernels": kernels, "launch_configs": configs}, {"rank": 3})
    r.save(tmp_path / "run", overwrite=True)
    again = cuptiprof.open(tmp_path / "run")
    for column in ("start", "end", "name", "region", "grid_x"):
        assert again.kernels[column].tolist() == r.kernels[column].tolist()


def test_merge_renumbers_strings_and_configurations() -> None:
    def segment(names: list[str], grids: list[int]) -> dict[str, Table]:
        s = Strings()
        configs = Table.from_columns("launch_configs", {"grid_x": grids}, s)
        kernels = Table.from_columns(
            "kernels", {"start": [1] * len(names), "name": names, "config": list(range(len(grids)))}, s, configs
        )
        return Result({"kernels": kernels, "launch_configs": configs}).tables

    merged = merge([segment(["a", "b"], [1, 2]), segment(["b", "c"], [3, 4])])
    assert merged["kernels"]["name"].tolist() == ["a", "b", "b", "c"]
    assert merged["kernels"]["grid_x"].tolist() == [1, 2, 3, 4]


def test_enum_names() -> None:
    assert enums.code_of(enums.MEMCPY_KINDS, "HtoD") == 1
    assert enums.code_of(enums.MEMORY_KINDS, "nonsense") == 0
    assert enums.code_of(enums.OVERHEAD_KINDS, "UVM Activity Init") == 8 << 16
    assert (enums.LAUNCH, enums.KERNEL, enums.REGION, enums.SAMPLE) == (1, 2, 3, 4)  # files that exist have them


def test_the_docs_of_columns_name_the_codes() -> None:
    columns = schema()["metric_ranges"]
    for code, text in enums.STRATEGIES.items():
        assert f"{code} {text}" in columns["strategy"].doc
    for code, text in enums.RANGE_KINDS.items():
        assert f"{code} a {text}" in columns["kind"].doc


def test_kinds_of_activities_are_cuptis() -> None:
    assert KINDS["kernel"] == (10,) and KINDS["memcpy"] == (1, 22) and set(DEFAULT) <= set(KINDS)


def test_only_a_saved_run_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years of work")
    (tmp_path / "file").write_text("more")
    r = cuptiprof.open(trace_path("triton-a100"))
    for name in ("mine", "file"):
        with pytest.raises(ResultError, match="not a saved run"):
            r.save(tmp_path / name, overwrite=True)
    assert (tmp_path / "mine" / "thesis.txt").read_text() == "years of work"
    assert (tmp_path / "file").read_text() == "more"
