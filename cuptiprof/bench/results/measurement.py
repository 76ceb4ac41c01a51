"""What measuring one function gave. Times are ns of one call, float64."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

import msgspec
import msgspec.structs
import numpy as np
import numpy.typing as npt

from cuptiprof.data.checked import checked
from cuptiprof.errors import ResultError

Float64 = npt.NDArray[np.float64]
Scalar = str | int | float | bool | None

FORMAT = 1
MAX_SAMPLES = 10_000_000  # of a file: what nobody measures is not read into memory


class Interval(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A median, ns, and the interval that holds the true one at `confidence`."""

    median: float
    low: float
    high: float
    confidence: float = 0.95

    @property
    def half_width(self) -> float:
        """Half of the interval over the median; NaN for a median of 0."""
        return (self.high - self.low) / 2 / self.median if self.median else math.nan


class Discard(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A sample that was taken and not used: its place among all that were taken, ns a call (NaN: unknown), and why."""

    index: int
    value: float
    reason: str


class KernelTime(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One kernel, copy or set of the function: executions a call, and the median ns that a call spends in it."""

    name: str
    calls: float
    ns: float


class CounterValue(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A metric over one call of the function."""

    name: str
    value: float
    unit: str = ""


class Roofline(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
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
        given = {k: _with_nan(v) if k in _NUMBERS and v is not None else v for k, v in data.items()}
        if given.get("first_call_ns") is None:
            given.pop("first_call_ns", None)
        stored = msgspec.structs.asdict(checked(given, _Stored, f"not a measurement of format {FORMAT}"))
        count, taken = len(stored["samples"]), len(stored["samples"]) + len(stored["discarded"])
        if len(stored["times"]) != count or len(stored["span"]) not in (0, count):
            raise ResultError("not a measurement: samples, times and span of different lengths")
        if any(len(v) != count for v in stored["reported"].values()):
            raise ResultError("not a measurement: reported numbers and samples of different lengths")
        places = {d.index for d in stored["discarded"]}
        if len(places) != len(stored["discarded"]) or not places <= set(range(taken)):
            raise ResultError("not a measurement: discarded samples out of place")
        for name in ("samples", "times", "span"):
            stored[name] = np.array(stored[name], np.float64)
        stored["reported"] = {name: np.array(v, np.float64) for name, v in stored["reported"].items()}
        del stored["format"]
        return cls(**stored)


Series = Annotated[list[float], msgspec.Meta(max_length=MAX_SAMPLES)]


class _Stored(msgspec.Struct):
    """What a file holds of a measurement."""

    format: Literal[1]  # FORMAT
    name: str
    strategy: str
    samples: Annotated[list[float], msgspec.Meta(min_length=1, max_length=MAX_SAMPLES)]
    times: Series
    interval: Interval
    params: dict[str, str | int | float | bool | None] = {}
    l2: str = "warm"
    span: Series = []
    batch: Annotated[int, msgspec.Meta(ge=1)] = 1
    stopped_by: str = ""
    converged: bool = False
    discarded: tuple[Discard, ...] = ()
    warmup_calls: int = 0
    first_call_ns: float = math.nan
    kernels: tuple[KernelTime, ...] = ()
    counters: tuple[CounterValue, ...] = ()
    reported: dict[str, Series] = {}
    roofline: Roofline | None = None
    notes: tuple[str, ...] = ()
    cost: dict[str, float] = {}
    environment: dict[str, Any] = {}


_NUMBERS = ("samples", "times", "span", "interval", "discarded", "kernels", "counters", "reported", "roofline", "cost")


def _with_nan(value: Any, depth: int = 2) -> Any:
    """JSON has no NaN: where numbers are, null is one."""
    if value is None:
        return math.nan
    if isinstance(value, list):
        return [_with_nan(v, depth - 1) for v in value] if depth else value
    if isinstance(value, dict):
        return {k: _with_nan(v, depth - 1) for k, v in value.items()} if depth else value
    return value


def _plain(value: Any) -> Any:
    if isinstance(value, msgspec.Struct):
        return {name: _plain(v) for name, v in msgspec.structs.asdict(value).items()}
    if isinstance(value, np.ndarray):
        return [_plain(float(v)) for v in value]
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, (tuple, list)):
        return [_plain(v) for v in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value
