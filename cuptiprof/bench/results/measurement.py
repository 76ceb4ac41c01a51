"""What measuring one function gave. Times are ns of one call, float64."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from cuptiprof.errors import ResultError

Float64 = npt.NDArray[np.float64]
Scalar = str | int | float | bool | None

FORMAT = 1
MAX_SAMPLES = 10_000_000  # of a file: what nobody measures is not read into memory


@dataclass(frozen=True)
class Interval:
    """A median, ns, and the interval that holds the true one at `confidence`."""

    median: float
    low: float
    high: float
    confidence: float = 0.95

    @property
    def half_width(self) -> float:
        """Half of the interval over the median; NaN for a median of 0."""
        return (self.high - self.low) / 2 / self.median if self.median else math.nan


@dataclass(frozen=True)
class Discard:
    """A sample that was taken and not used: its place among all that were taken, ns a call (NaN: unknown), and why."""

    index: int
    value: float
    reason: str


@dataclass(frozen=True)
class KernelTime:
    """One kernel, copy or set of the function: executions a call, and the median ns that a call spends in it."""

    name: str
    calls: float
    ns: float


@dataclass(frozen=True)
class CounterValue:
    """A metric over one call of the function."""

    name: str
    value: float
    unit: str = ""


@dataclass(frozen=True)
class Roofline:
    """Where the function lies under the roofs of the chip. Rates are per s; shares 0 to 1, NaN where not known.

    `bound` is "compute" or "memory": the roof that is met first at this intensity (operations a byte).
    """

    flops: float
    bytes: float
    flop_rate: float
    byte_rate: float
    peak_flop_rate: float
    peak_byte_rate: float
    intensity: float
    bound: str
    share: float
    source: str


@dataclass(frozen=True)
class Measurement:
    """The times of one function, how they were taken, and what disturbed them.

    Attributes:
        name, params: which function, at which point of a sweep.
        strategy: "kernel", "event", "graph", "cpu", "wall" or "manual".
        l2: "cold" or "warm".
        samples: shape (n,), ns of one call, those in use, in the order they were taken.
        times: shape (n,), when each was taken, s from the start of measuring.
        span: shape (n,), of strategy "kernel": ns from the first start to the last end of a call's GPU work; else empty.
        batch: calls that a sample is the mean of.
        interval: of the median of `samples`.
        stopped_by: why measuring ended. `converged`: because the wanted precision was reached, not for a limit.
        warmup_calls, first_call_ns: calls before, and what the very first took (wall time; compilation is in it).
        kernels: of strategy "kernel": what the calls are made of, the longest first.
        counters: values over one call, in the order asked for.
        reported: of strategy "manual": the other numbers that the function returned with its time, by name, shape (n,) each.
        notes: what a reader must know: what disturbed the run, what could not be read.
        cost: s the harness took, by phase ("warmup", "measuring", "counters").
        environment: chip, clocks, driver, versions, commit (see ``cuptiprof.bench.environment``).
    """

    name: str
    strategy: str
    samples: Float64
    times: Float64
    interval: Interval
    params: Mapping[str, Scalar] = field(default_factory=dict)
    l2: str = "warm"
    span: Float64 = field(default_factory=lambda: np.empty(0))
    batch: int = 1
    stopped_by: str = ""
    converged: bool = False
    discarded: tuple[Discard, ...] = ()
    warmup_calls: int = 0
    first_call_ns: float = math.nan
    kernels: tuple[KernelTime, ...] = ()
    counters: tuple[CounterValue, ...] = ()
    reported: Mapping[str, Float64] = field(default_factory=dict)
    roofline: Roofline | None = None
    notes: tuple[str, ...] = ()
    cost: Mapping[str, float] = field(default_factory=dict)
    environment: Mapping[str, Any] = field(default_factory=dict)

    @property
    def median(self) -> float:
        """ns of one call."""
        return self.interval.median

    @property
    def simulated(self) -> bool:
        """True when it ran on the simulated device."""
        return bool(self.environment.get("simulated"))

    def places(self) -> npt.NDArray[np.int64]:
        """Shape (n,): the place of each sample in use among all that were taken, those discarded counted too."""
        taken = np.ones(len(self.samples) + len(self.discarded), bool)
        taken[[d.index for d in self.discarded]] = False
        return np.flatnonzero(taken)

    def counter(self, name: str) -> float:
        """A counter's value.

        Raises:
            KeyError: it was not asked for.
        """
        for c in self.counters:
            if c.name == name:
                return c.value
        raise KeyError(name)

    def __str__(self) -> str:
        from cuptiprof.bench.results.description import describe

        return describe(self)

    def __repr__(self) -> str:
        return f"<cuptiprof.bench.Measurement {self.name!r}: {self.median:.0f} ns, {len(self.samples)} samples>"

    def to_dict(self) -> dict[str, Any]:
        """What JSON holds; NaN becomes None. ``from_dict`` reads it back."""
        out: dict[str, Any] = {"format": FORMAT}
        for f in dataclasses.fields(self):
            value = getattr(self, f.name)
            out[f.name] = _plain(value)
        return out

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Measurement:
        """Read back what ``to_dict`` wrote; everything in it is checked.

        Raises:
            ResultError: not a measurement, or of another format.
        """
        if data.get("format") != FORMAT:
            raise ResultError(f"not a measurement of format {FORMAT}: {str(data.get('format'))[:40]!r}")
        try:
            samples, times, span = (_numbers(data.get(k, [])) for k in ("samples", "times", "span"))
            if not len(samples) or len(times) != len(samples) or len(span) not in (0, len(samples)):
                raise ValueError("samples, times and span of different lengths")
            reported = {_text(k): _numbers(v) for k, v in dict(data.get("reported", {})).items()}
            if any(len(v) != len(samples) for v in reported.values()):
                raise ValueError("reported numbers and samples of different lengths")
            discarded = tuple(_record(Discard, d) for d in data.get("discarded", ()))
            places = {d.index for d in discarded}
            if len(places) != len(discarded) or not places <= set(range(len(samples) + len(discarded))):
                raise ValueError("discarded samples out of place")
            roofline = data.get("roofline")
            return cls(
                name=_text(data["name"]),
                strategy=_text(data["strategy"]),
                samples=samples,
                times=times,
                span=span,
                interval=_record(Interval, data["interval"]),
                params=_params(data.get("params", {})),
                l2=_text(data.get("l2", "warm")),
                batch=max(1, int(data.get("batch", 1))),
                stopped_by=_text(data.get("stopped_by", "")),
                converged=data.get("converged") is True,
                discarded=discarded,
                warmup_calls=int(data.get("warmup_calls", 0)),
                first_call_ns=_number(data.get("first_call_ns")),
                kernels=tuple(_record(KernelTime, k) for k in data.get("kernels", ())),
                counters=tuple(_record(CounterValue, c) for c in data.get("counters", ())),
                reported=reported,
                roofline=_record(Roofline, roofline) if roofline is not None else None,
                notes=tuple(_text(n) for n in data.get("notes", ())),
                cost={_text(k): _number(v) for k, v in dict(data.get("cost", {})).items()},
                environment=dict(data.get("environment", {})),
            )
        except (KeyError, TypeError, ValueError, OverflowError, AttributeError) as e:
            raise ResultError(f"not a measurement: {type(e).__name__}: {str(e)[:200]}") from None


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: _plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, np.ndarray):
        return [_plain(float(v)) for v in value]
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, (tuple, list)):
        return [_plain(v) for v in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"text expected, not {type(value).__name__}")
    return value


def _number(value: Any) -> float:
    if value is None:
        return math.nan
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"number expected, not {type(value).__name__}")
    return float(value)


def _numbers(values: Any) -> Float64:
    if not isinstance(values, list) or len(values) > MAX_SAMPLES:
        raise TypeError("a list of numbers expected")
    return np.array([_number(v) for v in values], np.float64)


def _params(values: Any) -> dict[str, Scalar]:
    out: dict[str, Scalar] = {}
    for key, value in dict(values).items():
        if not isinstance(value, (str, int, float, bool, type(None))):
            raise TypeError(f"parameter {key!r} is no scalar")
        out[_text(key)] = value
    return out


def _record(kind: Any, data: Any) -> Any:
    """A flat dataclass of numbers and texts; fields it does not have are refused."""
    known = {f.name: f for f in dataclasses.fields(kind)}
    values = dict(data)
    if unknown := set(values) - set(known):
        raise ValueError(f"unknown field {sorted(unknown)[0]!r}")
    for name, value in values.items():
        values[name] = _text(value) if known[name].type == "str" else _number(value)
        if known[name].type == "int":
            values[name] = int(values[name])
    return kind(**values)
