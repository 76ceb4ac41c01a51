"""What measuring one function gave. Times are ns of one call, float64."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

import msgspec
import msgspec.structs
import numpy as np
import numpy.typing as npt

from cuptiprof._core import demangle
from cuptiprof.bench.results.parts import CounterValue, Discard, Float64, Interval, KernelTime, Roofline, Scalar
from cuptiprof.bench.results.stored import Params, Positive, Series, Text, check_params, to_json, with_nan
from cuptiprof.data.checked import checked
from cuptiprof.errors import BenchError, ResultError
from cuptiprof.text.html import html_text
from cuptiprof.text.metric_units import format_metric
from cuptiprof.text.names import printable
from cuptiprof.text.units import format_byte_rate, format_bytes, format_energy, format_flop_rate, format_time

MAX_KERNELS_SHOWN = 8
NAME_WIDTH = 64

TITLES = {
    "kernel": "GPU time",
    "event": "time by events",
    "graph": "graph replay",
    "cpu": "host time",
    "wall": "wall time",
    "manual": "own time",
}
FORMAT = 1


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
        sm_hz: shape (n,), the SM clock during each sample as the GPU counted it, Hz, NaN where it is not known; empty: of none.
        batch: calls that a sample is the mean of.
        tick: resolution of `samples`, ns of a call: the step of the clock over `batch`; NaN: not known.
        runs: samples of each process, where those of several were pooled.
        interval: of the median of `samples`; of several processes, of the mean of their medians.
        stopped_by: why measuring ended. `converged`: because the wanted precision was reached, not for a limit.
        warmup_calls, first_call_ns: calls before, and what the very first took (wall time; compilation is in it).
        kernels: of strategy "kernel": what the calls are made of, the longest first.
        counters: values over one call, in the order asked for.
        energy_per_call: J of one call, of the whole board; NaN: not asked for, or not known.
        peak_memory: bytes that a call allocates at its highest, beyond what was there before; None: not asked for, or not known.
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
    sm_hz: Float64 = field(default_factory=lambda: np.empty(0))
    batch: int = 1
    tick: float = math.nan
    runs: tuple[int, ...] = ()
    stopped_by: str = ""
    converged: bool = False
    discarded: tuple[Discard, ...] = ()
    warmup_calls: int = 0
    first_call_ns: float = math.nan
    kernels: tuple[KernelTime, ...] = ()
    counters: tuple[CounterValue, ...] = ()
    energy_per_call: float = math.nan
    peak_memory: int | None = None
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
    def known_tick(self) -> float | None:
        """`tick`, None where it is not known."""
        return None if math.isnan(self.tick) else self.tick

    def run_medians(self) -> Float64:
        """Shape (processes,), ns: the median of each process's samples."""
        ends: list[int] = np.cumsum(self.runs)[:-1].tolist()
        return np.array([np.median(part) for part in np.split(self.samples, ends)], np.float64)

    @property
    def simulated(self) -> bool:
        """True when it ran on the simulated device."""
        return bool(self.environment.get("simulated"))

    def places(self) -> npt.NDArray[np.int64]:
        """Shape (n,): the place of each sample in use among all that were taken, those discarded counted too."""
        taken = np.ones(len(self.samples) + len(self.discarded), bool)
        taken[[d.index for d in self.discarded]] = False
        return np.flatnonzero(taken)

    def cycles(self) -> Float64:
        """Shape (n,), cycles of one call: each sample times the SM clock during it; of those without, the median of the others.

        Raises:
            BenchError: the SM clock is not known.
        """
        known = self.sm_hz[~np.isnan(self.sm_hz)]
        if not known.size:
            raise BenchError(
                f"the SM clock during the samples of {self.name!r} is not known, so neither are cycles",
                hint='strategies "kernel", "event" and "graph" read it on the GPU',
            )
        return self.samples * np.where(np.isnan(self.sm_hz), np.median(known), self.sm_hz) / 1e9

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
        return "\n".join(map(printable, _lines(self)))  # a name from a file may hold anything

    def __repr__(self) -> str:
        return f"<cuptiprof.bench.Measurement {self.name!r}: {self.median:.0f} ns, {len(self.samples)} samples>"

    def _repr_html_(self) -> str:
        return html_text(str(self))

    def to_dict(self) -> dict[str, Any]:
        """What JSON holds; NaN becomes None. ``from_dict`` reads it back."""
        out: dict[str, Any] = {"format": FORMAT}
        for f in dataclasses.fields(self):
            value = getattr(self, f.name)
            out[f.name] = to_json(value)
        return out

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Measurement:
        """Read back what ``to_dict`` wrote; everything in it is checked.

        Raises:
            ResultError: not a measurement, or of another format.
        """
        given = {k: with_nan(v) if k in _NUMBERS and v is not None else v for k, v in data.items()}
        for name in ("first_call_ns", "tick", "energy_per_call"):
            if given.get(name) is None:
                given.pop(name, None)
        stored = msgspec.structs.asdict(checked(given, _Stored, f"not a measurement of format {FORMAT}"))
        check_params(stored["params"])
        count, taken = len(stored["samples"]), len(stored["samples"]) + len(stored["discarded"])
        if stored["runs"] and sum(stored["runs"]) != count:
            raise ResultError("not a measurement: samples and their processes do not add up")
        if len(stored["times"]) != count or any(len(stored[n]) not in (0, count) for n in ("span", "sm_hz")):
            raise ResultError("not a measurement: samples, times, span and clocks of different lengths")
        if any(len(v) != count for v in stored["reported"].values()):
            raise ResultError("not a measurement: reported numbers and samples of different lengths")
        places = {d.index for d in stored["discarded"]}
        if len(places) != len(stored["discarded"]) or not places <= set(range(taken)):
            raise ResultError("not a measurement: discarded samples out of place")
        for name in ("samples", "times", "span", "sm_hz"):
            stored[name] = np.array(stored[name], np.float64)
        stored["reported"] = {name: np.array(v, np.float64) for name, v in stored["reported"].items()}
        del stored["format"]
        return cls(**stored)


class _Stored(msgspec.Struct):
    """What a file holds of a measurement."""

    format: Literal[1]  # FORMAT
    name: Text
    strategy: Text
    samples: Annotated[Series, msgspec.Meta(min_length=1)]
    times: Series
    interval: Interval
    params: Params = {}
    l2: Text = "warm"
    span: Series = []
    sm_hz: Series = []
    batch: Positive = 1
    tick: Annotated[float, msgspec.Meta(ge=0)] = math.nan
    runs: tuple[Positive, ...] = ()
    stopped_by: str = ""
    converged: bool = False
    discarded: tuple[Discard, ...] = ()
    warmup_calls: int = 0
    first_call_ns: float = math.nan
    kernels: tuple[KernelTime, ...] = ()
    counters: tuple[CounterValue, ...] = ()
    energy_per_call: Annotated[float, msgspec.Meta(ge=0)] = math.nan
    peak_memory: Annotated[int, msgspec.Meta(ge=0)] | None = None
    reported: dict[str, Series] = {}
    roofline: Roofline | None = None
    notes: tuple[str, ...] = ()
    cost: dict[str, float] = {}
    environment: dict[str, Any] = {}


_NUMBERS = (
    "samples",
    "times",
    "span",
    "sm_hz",
    "interval",
    "discarded",
    "kernels",
    "counters",
    "reported",
    "roofline",
    "cost",
)


def notes_of(named: Mapping[str, Sequence[str]]) -> list[str]:
    """Notes of several measurements by name: each once, with those that it is of, unless it is of all."""
    of: dict[str, list[str]] = {}
    for name, notes in named.items():
        for note in dict.fromkeys(notes):
            of.setdefault(note, []).append(name)
    return [note if 1 < len(names) == len(named) else f"{', '.join(names)}: {note}" for note, names in of.items()]


def _lines(m: Measurement) -> Iterator[str]:
    chip = m.environment.get("chip", "")
    where = f"{m.l2} L2   {chip}" if chip else "host"
    where = f"{where} (SIMULATED: not a measurement of a GPU)" if m.simulated else where
    params = ", ".join(f"{k}={v}" for k, v in m.params.items())
    yield f"{m.name}{f' [{params}]' if params else ''}   {where}"
    i = m.interval
    known = f"[{_time(i.low)}, {_time(i.high)}] at {100 * i.confidence:.3g} %" if i.confidence else "no interval"
    yield (
        f"  {TITLES.get(m.strategy, m.strategy):15}{_time(i.median)}  {known}, {len(m.samples):,} samples"
        + (f" of {m.batch} calls" if m.batch > 1 else "")
    )
    if len(m.span):
        yield f"  {'span':15}{_time(float(sorted(m.span)[len(m.span) // 2]))}"
    total = sum(k.ns for k in m.kernels)
    if len(m.kernels) > 1 or any(k.calls != 1 for k in m.kernels):
        for k in m.kernels[:MAX_KERNELS_SHOWN]:
            yield f"    {_percent(k.ns, total)}  {_time(k.ns):>10}  {k.calls:g} x {_cut(k.name)}"
        if len(m.kernels) > MAX_KERNELS_SHOWN:
            rest = sum(k.ns for k in m.kernels[MAX_KERNELS_SHOWN:])
            yield f"    {_percent(rest, total)}  {_time(rest):>10}  {len(m.kernels) - MAX_KERNELS_SHOWN} others"
    elif m.kernels:
        yield f"    {_cut(m.kernels[0].name)}"
    for c in m.counters:
        value = "no value" if math.isnan(c.value) else format_metric(c.value, c.unit)
        yield f"  {c.name:45} {value}"
    yield from _beside_time(m)
    yield from _roofline(m)
    yield f"  {_how(m)}"
    yield from (f"  note: {note}" for note in m.notes)


def _beside_time(m: Measurement) -> Iterator[str]:
    known = m.sm_hz[~np.isnan(m.sm_hz)]
    if known.size:
        yield f"  {'SM clock':15}{np.median(known) / 1e6:,.0f} MHz"
    if math.isfinite(m.energy_per_call):
        yield f"  {'energy':15}{format_energy(m.energy_per_call)} a call"
    if m.peak_memory is not None:
        yield f"  {'peak memory':15}{format_bytes(m.peak_memory)}"


def _roofline(m: Measurement) -> Iterator[str]:
    r = m.roofline
    if r is None:
        return
    parts = []
    if not math.isnan(r.flop_rate):
        parts.append(format_flop_rate(r.flop_rate) + _share(r.flop_rate, r.peak_flop_rate))
    if not math.isnan(r.byte_rate):
        parts.append(format_byte_rate(r.byte_rate) + _share(r.byte_rate, r.peak_byte_rate))
    if not math.isnan(r.intensity):
        parts.append(f"{r.intensity:.3g} FLOP/B")
    bound = f"; nearest roof: {r.bound}, under which it takes {_time(m.median * r.share)}" if r.bound else ""
    yield f"  {'roofline':15}{', '.join(parts)}{bound}  ({r.source})"


def _share(rate: float, peak: float) -> str:
    return "" if math.isnan(peak) else f" = {100 * rate / peak:.1f} % of peak"


def _how(m: Measurement) -> str:
    first = f" (the first {_time(m.first_call_ns)})" if math.isfinite(m.first_call_ns) else ""
    text = f"{m.warmup_calls} calls of warm-up{first}; stopped: {m.stopped_by}"
    if m.discarded:
        reasons = [d.reason for d in m.discarded]
        counted = ", ".join(f"{reasons.count(r)} {r}" for r in dict.fromkeys(reasons))
        text += f"; discarded {len(reasons)} of {len(reasons) + len(m.samples)} samples: {counted}"
    return text


def _time(ns: float) -> str:
    return format_time(ns) if math.isfinite(ns) else "unknown"  # of a file: nothing that was measured is


def _percent(part: float, total: float) -> str:
    return f"{100 * part / total:5.1f} %" if total else f"{'':7}"


def _cut(name: str) -> str:
    plain = "".join(c if c.isprintable() else "?" for c in demangle(name))
    return plain if len(plain) <= NAME_WIDTH else plain[: NAME_WIDTH - 3] + "..."
