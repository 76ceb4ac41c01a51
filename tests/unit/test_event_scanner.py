"""The native reader of trace events against ``json.loads``: the same fields of any events, in pieces of any size."""

from __future__ import annotations

import contextlib
import gzip
import json
from decimal import Decimal
from typing import Any

import pytest
from conftest import trace_path
from hypothesis import example, given, settings
from hypothesis import strategies as st

from cuptiprof import _core
from cuptiprof.errors import ResultError

FIELDS = [("name", "text"), ("ts", "decimal"), ("id", "integer")]
ARGS = [("name", "text"), ("grid", "text"), ("correlation", "integer")]


def scanned(text: bytes, sizes: list[int]) -> _core.EventScanner:
    scanner = _core.EventScanner(FIELDS, ARGS)
    at = 0
    for size in [*sizes, len(text)]:
        scanner.feed(text[at : at + size])
        at += size
    scanner.feed(text[at:])
    scanner.finish()
    return scanner


def fields_of(scanner: _core.EventScanner) -> list[dict[int, Any]]:
    """Of each column: number of event -> value as JSON has it."""
    values = scanner.values()
    out = []
    for (_, kind), (_, text_events, texts, number_events, numbers) in zip(
        FIELDS + ARGS, scanner.take_columns(), strict=True
    ):
        found = {
            int(e): v if isinstance(v := values[t], str) else json.loads(v.decode("utf-8"), parse_float=Decimal)
            for e, t in zip(text_events, texts, strict=True)
        }
        for e, n in zip(number_events.tolist(), numbers.tolist(), strict=True):
            assert e not in found
            found[e] = Decimal(n) / 1000 if kind == "decimal" else n
        out.append(found)
    return out


def expected_of(events: list[Any]) -> list[dict[int, Any]]:
    dicts = [e for e in events if isinstance(e, dict)]
    of_args = [e["args"] if isinstance(e.get("args"), dict) else {} for e in dicts]
    return [{i: d[name] for i, d in enumerate(dicts) if name in d} for name, _ in FIELDS] + [
        {i: d[name] for i, d in enumerate(of_args) if name in d} for name, _ in ARGS
    ]


scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.decimals(-(10**16), 10**16, places=3, allow_nan=False).map(float)
    | st.text()
)
values = st.recursive(
    scalars, lambda v: st.lists(v, max_size=3) | st.dictionaries(st.text(max_size=3), v, max_size=3), max_leaves=6
)
events = st.fixed_dictionaries(
    {},
    optional={
        "name": st.text() | values,
        "ts": values,
        "id": values,
        "more": values,
        "args": values
        | st.fixed_dictionaries({}, optional={"name": values, "grid": values, "correlation": values, "x": values}),
    },
)


@given(
    st.lists(events | values, max_size=6),
    st.dictionaries(st.text(max_size=4), values, max_size=3),
    st.booleans(),
    st.booleans(),
    st.lists(st.integers(0, 40), max_size=30),
)
@example([{"ts": 1684875735437453.125}], {}, True, False, [1])
@settings(max_examples=400, deadline=None)
def test_random_traces(listed: list[Any], beside: dict[str, Any], alone: bool, spaced: bool, sizes: list[int]) -> None:
    beside.pop("traceEvents", None)
    whole = listed if alone else {**beside, "traceEvents": listed, "last": 1}
    text = json.dumps(whole, ensure_ascii=spaced, indent=1 if spaced else None).encode("utf-8", "surrogatepass")
    parsed = json.loads(text.decode("utf-8", "surrogatepass"), parse_float=Decimal)
    scanner = scanned(text, sizes)
    wanted = parsed if alone else parsed["traceEvents"]
    assert scanner.events == sum(isinstance(e, dict) for e in wanted)
    assert scanner.strangers == sum(not isinstance(e, dict) for e in wanted)
    named = {
        json.loads(f'"{k}"', strict=False): json.loads(v, parse_float=Decimal) for k, v in scanner.beside().items()
    }
    assert named == ({} if alone else {k: v for k, v in parsed.items() if k != "traceEvents"})
    for found, expected in zip(fields_of(scanner), expected_of(wanted), strict=True):
        assert found.keys() == expected.keys()
        for event, value in expected.items():
            # A decimal is cut behind the third digit.
            if isinstance(found[event], Decimal) and isinstance(value, int | Decimal) and value is not True:
                assert abs(found[event] - value) < Decimal("0.001")
            else:
                assert found[event] == value


@given(st.binary(max_size=60), st.lists(st.integers(0, 9), max_size=9))
@settings(max_examples=500, deadline=None)
def test_any_bytes_are_a_trace_or_an_error(text: bytes, sizes: list[int]) -> None:
    try:
        scanned(text, sizes)
    except ResultError as e:
        assert "not a JSON trace (byte " in str(e)


@given(st.data())
@settings(max_examples=200, deadline=None)
def test_a_damaged_trace_is_read_as_far_or_refused(data: st.DataObject) -> None:
    """One byte changed, or the end cut off: an error, or events; where it is cut, always an error."""
    text = json.dumps(
        {"a": [1], "traceEvents": [{"name": "k\\u0041", "ts": 1.5, "args": {"grid": [1, 2]}}] * 3}
    ).encode()
    at = data.draw(st.integers(0, len(text) - 1))
    with pytest.raises(ResultError):
        scanned(text[:at], [7])
    changed = bytearray(text)
    changed[at] = data.draw(st.integers(0, 255))
    with contextlib.suppress(ResultError):
        assert scanned(bytes(changed), [5, 11]).events <= 3


def test_a_recorded_trace_is_what_json_says() -> None:
    text = gzip.decompress(trace_path("train-v100").read_bytes())
    parsed = json.loads(text, parse_float=Decimal)["traceEvents"]
    scanner = scanned(text, [1 << 16] * (len(text) >> 16))
    assert scanner.events == len(parsed) and scanner.strangers == 0
    assert fields_of(scanner) == expected_of(parsed)


def test_what_is_nested_too_deeply_or_never_ends_is_refused() -> None:
    with pytest.raises(ResultError, match="nested too deeply"):
        scanned(b"[" + b"[" * 100_000, [])
    scanner = _core.EventScanner(FIELDS, ARGS)
    scanner.feed(b'[{"name": "')
    with pytest.raises(ResultError, match="64 MiB without an end"):
        for _ in range(9):
            scanner.feed(b"x" * (8 << 20))


def test_whole_arguments_of_some_categories() -> None:
    """Counters have any names: the whole object is kept, of the categories that were asked for."""
    scanner = _core.EventScanner([("cat", "text"), ("args", "text")], [("x", "integer")], ["counted"])
    text = b'[{"args": {"x": 1, "y": {"z": 2}}, "cat": "counted"}, {"cat": "other", "args": {"x": 3}}, {"args": 7}, {"args": {}}]'
    for at in range(len(text)):
        scanner.feed(text[at : at + 1])
    scanner.finish()
    values = scanner.values()
    columns = {c[0]: c for c in scanner.take_columns()}
    assert scanner.has_array
    assert {e: values[t] for e, t in zip(columns["args"][1].tolist(), columns["args"][2].tolist(), strict=True)} == {
        0: b'{"x": 1, "y": {"z": 2}}',
        2: b"7",
    }
    assert columns["x"][3].tolist() == [0, 1] and columns["x"][4].tolist() == [1, 3]
    nothing = _core.EventScanner(FIELDS, ARGS)
    nothing.feed(b'{"traceEvents": 3}')
    nothing.finish()
    assert not nothing.has_array


def test_events_that_are_left_out_have_no_number() -> None:
    scanner = _core.EventScanner(
        [("ph", "text"), ("cat", "text"), ("ts", "decimal")], [], [], [("cat", "flow"), ("ph", "M")]
    )
    scanner.feed(b'[{"ts": 1}, {"ts": 2, "cat": "flow"}, {"ph": "M"}, {"cat": "flows", "ts": 3}, {"ph": "X", "ts": 4}]')
    scanner.finish()
    assert scanner.events == 3 and scanner.take_places().tolist() == [0, 3, 4]
    columns = {c[0]: c for c in scanner.take_columns()}
    assert columns["ts"][3].tolist() == [0, 1, 2] and columns["ts"][4].tolist() == [1000, 3000, 4000]


def test_names_in_any_order_and_number() -> None:
    """What followed a name last time is tried first: it must not be taken for what begins alike."""
    events = [{"a": 1, "id": i, "name": "x"} for i in range(3)]
    events += [
        {"id": 7, "a": 1, "nam": 3, "name": "y"},
        {"name": "z", "idx": 1, "i": 2, "id": 9},
        {"id\\": 1, 'id"': 2, "id": 5},
    ]
    events += [{f"key {i}": i, "id": i} for i in range(6000)]
    text = json.dumps(events).encode()
    scanner = scanned(text, [7] * 300)
    found = fields_of(scanner)
    assert found == expected_of(events)
