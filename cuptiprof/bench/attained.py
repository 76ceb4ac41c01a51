"""Where a function lies under the roofs of its chip.

Williams, Waterman, Patterson, Roofline: an insightful visual performance model, CACM 52 (2009): a function of intensity I
(operations a DRAM byte) reaches at most min(peak operations/s, I * peak bytes/s).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from cuptiprof.bench.counted_calls import BYTES_METRIC, Demand, Read
from cuptiprof.bench.peaks import peak_byte_rate, peak_flop_rate
from cuptiprof.bench.results.parts import Roofline
from cuptiprof.device.gpu import Meter

_DURATION = "gpu__time_duration.sum"  # ns


ABOVE = 1.02
"""of a roof: by more than peaks and times are uncertain. A call that is above it does not do what was counted."""


def make_roofline(
    gpu: Meter, demand: Demand, read: Read, ns: float, clocks: Mapping[str, float] | None = None
) -> Roofline | None:
    """The position of a call that takes `ns`; None where neither operations nor bytes are known.

    Given amounts are set against the chip's data (see :mod:`cuptiprof.bench.peaks`), measured operations against the peaks of the
    pipes that did them, both at the SM clock of the run where it was read.

    Args:
        clocks: of the run, see ``ClockLog.summary``.
    """
    sm_mhz = (clocks or {}).get("sm_mhz", 0.0)
    at = ""
    flops, peak_flops, pipe = demand.flops or math.nan, math.nan, demand.dtype
    if demand.measure_flops:
        flops, peak_flops, pipe = _measured(read)
    elif demand.flops and demand.dtype:
        peak_flops = peak_flop_rate(gpu, demand.dtype, sm_mhz)
        at = f"; peak at {sm_mhz:.0f} MHz, as measured" if sm_mhz else "; peak at the highest clock"
    amount = read.value(BYTES_METRIC) if demand.measure_bytes else demand.bytes or math.nan
    if math.isnan(flops) and math.isnan(amount):
        return None
    peak_bytes = peak_byte_rate(gpu)
    flop_rate, byte_rate = _over(flops * 1e9, ns), _over(amount * 1e9, ns)
    of_compute, of_memory = flop_rate / peak_flops, byte_rate / peak_bytes
    shares = {"compute": of_compute, "memory": of_memory}
    known = {k: v for k, v in shares.items() if not math.isnan(v)}
    bound = max(known, key=lambda k: known[k]) if known else ""
    return Roofline(
        flops=flops,
        bytes=amount,
        flop_rate=flop_rate,
        byte_rate=byte_rate,
        peak_flop_rate=peak_flops,
        peak_byte_rate=peak_bytes,
        intensity=_over(flops, amount),
        bound=bound,
        share=known.get(bound, math.nan),
        source=", ".join(part for part in (*_sources(demand), pipe) if part) + at,
    )


def _sources(demand: Demand) -> Iterator[str]:
    """Where the amounts come from that are known."""
    for name, measured, given in (
        ("operations", demand.measure_flops, demand.flops),
        ("bytes", demand.measure_bytes, demand.bytes),
    ):
        if measured or given:
            yield f"{name} {'measured' if measured else 'given'}"


def roof_notes(r: Roofline | None, l2: str) -> list[str]:
    """What a reader must know of a call that is faster than a roof allows."""
    if r is None:
        return []
    out = []
    if (share := r.byte_rate / r.peak_byte_rate) > ABOVE:
        why = "its data are served by the L2, l2='cold' measures DRAM" if l2 == "warm" else "does it move so many?"
        out.append(f"its bytes over its time are {100 * share:.0f} % of the peak of DRAM: {why}")
    if (share := r.flop_rate / r.peak_flop_rate) > ABOVE:
        out.append(f"its operations over its time are {100 * share:.0f} % of the peak: are flops= and dtype= right?")
    return out


def _over(a: float, b: float) -> float:
    """a / b; NaN for b = 0: a call that takes no time, or whose data never leave the L2."""
    return a / b if b else math.nan


def _measured(read: Read) -> tuple[float, float, str]:
    """(operations of a call, peak of their mix, the pipe that takes most of it) from the preset "roofline".

    The peak of a mix is what the chip reaches when each pipe runs at its own peak, one after the other: the harmonic mean of the
    peaks, weighted by operations.
    """
    seconds = read.value(_DURATION) / 1e9
    shares: dict[str, float] = {}
    rate = 0.0
    for c in read.all:
        name = c.name.removeprefix("roofline_").removesuffix("_achieved")
        roof = read.value(f"roofline_{name}_peak")
        if c.name.endswith("_achieved") and c.unit.startswith(("flop", "op")) and c.value > 0 and roof > 0:
            shares[name] = c.value / roof
            rate += c.value
    if not shares:
        return math.nan, math.nan, ""
    return rate * seconds, rate / sum(shares.values()), max(shares, key=lambda n: shares[n])
