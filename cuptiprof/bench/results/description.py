"""A measurement for people."""

from __future__ import annotations

import math
from collections.abc import Iterator

from cuptiprof._core import demangle
from cuptiprof.bench.results.measurement import Measurement
from cuptiprof.text.metric_units import format_metric
from cuptiprof.text.names import printable
from cuptiprof.text.units import format_flop_rate, format_time

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


def describe(m: Measurement) -> str:
    """Several lines: time with interval, kernels, counters, roofline, what disturbed the run."""
    return "\n".join(map(printable, _lines(m)))  # a name from a file may hold anything


def _lines(m: Measurement) -> Iterator[str]:
    chip = m.environment.get("chip", "")
    where = f"{m.l2} L2   {chip}" if chip else "host"
    where = f"{where} (SIMULATED: not a measurement of a GPU)" if m.simulated else where
    params = ", ".join(f"{k}={v}" for k, v in m.params.items())
    yield f"{m.name}{f' [{params}]' if params else ''}   {where}"
    i = m.interval
    yield (
        f"  {TITLES.get(m.strategy, m.strategy):15}{_time(i.median)}  "
        f"[{_time(i.low)}, {_time(i.high)}] at {100 * i.confidence:.3g} %, {len(m.samples):,} samples"
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
    yield from _roofline(m)
    yield f"  {_how(m)}"
    yield from (f"  note: {note}" for note in m.notes)


def _roofline(m: Measurement) -> Iterator[str]:
    r = m.roofline
    if r is None:
        return
    parts = []
    if not math.isnan(r.flop_rate):
        parts.append(format_flop_rate(r.flop_rate) + _share(r.flop_rate, r.peak_flop_rate))
    if not math.isnan(r.byte_rate):
        parts.append(_byte_rate(r.byte_rate) + _share(r.byte_rate, r.peak_byte_rate))
    if not math.isnan(r.intensity):
        parts.append(f"{r.intensity:.3g} FLOP/B")
    bound = f"; nearest roof: {r.bound}, under which it takes {_time(m.median * r.share)}" if r.bound else ""
    yield f"  {'roofline':15}{', '.join(parts)}{bound}  ({r.source})"


def _share(rate: float, peak: float) -> str:
    return "" if math.isnan(peak) else f" = {100 * rate / peak:.1f} % of peak"


def _byte_rate(rate: float) -> str:
    # In powers of 1000, as chips' peaks are given; elsewhere rates are nvprof's, in powers of 1024.
    return f"{rate / 1e12:.3f} TB/s" if rate >= 1e12 else f"{rate / 1e9:.2f} GB/s"


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
