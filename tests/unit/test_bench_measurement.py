"""A measurement as JSON: what is written is read back, and what nobody would write is refused."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cuptiprof.bench import CounterValue, Discard, Interval, KernelTime, Measurement, Roofline
from cuptiprof.errors import ResultError


def full() -> Measurement:
    return Measurement(
        name="f",
        strategy="kernel",
        samples=np.array([10.0, 11.0, 12.0]),
        times=np.array([0.0, 0.1, 0.2]),
        span=np.array([12.0, 13.0, 14.0]),
        interval=Interval(11.0, 10.0, 12.0),
        params={"n": 3, "dtype": "float16", "flag": True, "none": None, "x": 0.5},
        l2="cold",
        stopped_by="enough",
        converged=True,
        discarded=(Discard(1, math.nan, "lost"), Discard(3, 40.0, "slow")),
        warmup_calls=7,
        first_call_ns=1e9,
        kernels=(KernelTime("k", 2.0, 11.0),),
        counters=(CounterValue("ipc", 1.5), CounterValue("dram", math.nan, "byte/s")),
        roofline=Roofline(1e9, math.nan, 1e12, math.nan, 2e12, 3e12, math.nan, "compute", 0.5, "given"),
        notes=("one",),
        cost={"warmup": 0.5},
        environment={"chip": "H100", "simulated": True, "clocks": {"sm_mhz": 1980.0}},
    )


def test_what_is_written_is_read_back() -> None:
    m = full()
    text = json.dumps(m.to_dict(), allow_nan=False)
    again = Measurement.from_dict(json.loads(text))
    assert again.to_dict() == m.to_dict()
    assert again.simulated and again.converged and math.isnan(again.discarded[0].value)
    assert again.counter("ipc") == 1.5 and math.isnan(again.counter("dram"))
    assert again.places().tolist() == [0, 2, 4]
    assert again.interval.half_width == pytest.approx(1 / 11)
    with pytest.raises(KeyError):
        again.counter("nothing")
    assert "f [n=3" in str(again) and "discarded 2 of 5" in str(again) and "ipc" in str(again)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("format", 2),
        ("format", None),
        ("samples", []),
        ("samples", "10"),
        ("samples", [1, "2", 3]),
        ("samples", [[1], [2], [3]]),
        ("times", [0.0]),
        ("span", [1.0]),
        ("name", 5),
        ("strategy", None),
        ("interval", {"median": 1.0, "low": 1.0, "high": 1.0, "evil": 1}),
        ("interval", {"median": "1", "low": 1.0, "high": 1.0}),
        ("interval", [1, 2, 3]),
        ("params", {"a": [1]}),
        ("params", [1]),
        ("discarded", [{"index": 99, "value": 1.0, "reason": "x"}]),
        ("discarded", [{"index": -1, "value": 1.0, "reason": "x"}]),
        ("discarded", [{"index": 1, "value": 1.0, "reason": "x"}] * 2),
        ("kernels", [{"name": "k"}]),
        ("kernels", [3]),
        ("counters", [{"name": 1, "value": 1.0}]),
        ("roofline", {"flops": 1.0}),
        ("roofline", 7),
        ("notes", [1]),
        ("notes", 1),
        ("warmup_calls", "x"),
        ("cost", {"a": "b"}),
        ("environment", 3),
        ("batch", {}),
    ],
)
def test_what_nobody_writes_is_refused(key: str, value: Any) -> None:
    data = full().to_dict()
    data[key] = value
    with pytest.raises(ResultError):
        Measurement.from_dict(data)


def test_what_is_missing_is_refused_or_has_its_default() -> None:
    for key in ("name", "strategy", "interval", "samples", "times"):
        data = full().to_dict()
        del data[key]
        with pytest.raises(ResultError):
            Measurement.from_dict(data)
    data = {
        k: v for k, v in full().to_dict().items() if k in ("format", "name", "strategy", "interval", "samples", "times")
    }
    assert Measurement.from_dict(data).batch == 1


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=6,
)


@given(st.sampled_from(sorted(full().to_dict())), json_values)
def test_any_json_is_a_measurement_or_one_error(key: str, value: Any) -> None:
    data = full().to_dict()
    data[key] = value
    try:
        m = Measurement.from_dict(data)
    except ResultError:
        return
    str(m)
    m.to_dict()


def test_a_measurement_without_times_prints() -> None:
    """As a file may hold it: times that are not numbers, kernels that take no time."""
    kernels = tuple(KernelTime(f"k{i}", 1.0, 0.0) for i in range(10))
    m = Measurement(
        "f",
        "kernel",
        np.array([0.0]),
        np.zeros(1),
        Interval(math.nan, math.nan, math.inf),
        kernels=kernels,
        span=np.array([math.nan]),
    )
    text = str(m)
    assert "unknown  [unknown, unknown]" in text and "2 others" in text and "nan" not in text
