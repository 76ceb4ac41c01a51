"""Counters over one call, read after timing: never while anything is timed."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from numbers import Real

from cuptiprof._core import chip_name, region
from cuptiprof.bench.peaks import element_type
from cuptiprof.bench.results.parts import CounterValue
from cuptiprof.bench.sampling import MeasuredCall
from cuptiprof.bench.sampling.kernel import BETWEEN_SAMPLES
from cuptiprof.bench.sampling.strategy import before_sample
from cuptiprof.device.gpu import Meter
from cuptiprof.errors import BenchError, CuptiError, SessionError
from cuptiprof.metrics import select
from cuptiprof.session.profile import profile

MEASURED = "measured"
BYTES_METRIC = "dram__bytes.sum"
WORK_METRICS = "roofline"  # the preset: rates done and their peaks, and gpu__time_duration.sum


@dataclass(frozen=True)
class Demand:
    """What is asked for beside times: metrics, and the function's own operations and bytes, given or to be measured."""

    metrics: tuple[str, ...] = ()
    flops: float | None = None
    bytes: float | None = None
    measure_flops: bool = False
    measure_bytes: bool = False
    dtype: str = ""

    @staticmethod
    def make(
        metrics: str | Iterable[str], flops: float | str | None, bytes: float | str | None, dtype: object
    ) -> Demand:
        """Raises BenchError for amounts that are none and element types that are not known."""
        given = metrics.split(",") if isinstance(metrics, str) else list(metrics or ())
        if wrong := [n for n in given if not isinstance(n, str)]:
            raise BenchError(f"{wrong[0]!r} is no metric's name")
        names = tuple(n.strip() for n in given if n.strip())
        for name, amount in (("flops", flops), ("bytes", bytes)):
            if amount is None or amount == MEASURED:
                continue
            if isinstance(amount, bool) or not isinstance(amount, Real) or not 0 < amount < math.inf:
                raise BenchError(f"{name}={amount!r} is no amount", hint=f'a positive number, or "{MEASURED}"')
        return Demand(
            names,
            None if isinstance(flops, str) else flops,
            None if isinstance(bytes, str) else bytes,
            flops == MEASURED,
            bytes == MEASURED,
            element_type(dtype),
        )

    def all_metrics(self) -> tuple[str, ...]:
        """Names to count, those of the user first."""
        more = (WORK_METRICS,) * self.measure_flops + (BYTES_METRIC,) * self.measure_bytes
        return tuple(dict.fromkeys((*self.metrics, *more)))

    def check(self, gpu: Meter) -> None:
        """Before anything is measured.

        Raises:
            MetricError: a name that the chip does not have.
            BenchError: there is no GPU.
        """
        if names := self.all_metrics():
            if gpu.device is None:
                raise BenchError('device="host" has no counters')
            select(names, chip_name(gpu.device.library, 0))


@dataclass(frozen=True)
class Read:
    """What was read: values asked for, all values by name, and what a reader must know."""

    values: tuple[CounterValue, ...] = ()
    all: tuple[CounterValue, ...] = ()
    notes: tuple[str, ...] = ()

    def value(self, name: str) -> float:
        """NaN when there is none."""
        return next((c.value for c in self.all if c.name == name), math.nan)


def read_counters(gpu: Meter, call: MeasuredCall, demand: Demand, cold: bool) -> Read:
    """Run the call once a pass and read every counter over it. Where counting is refused the times are kept: a note says why."""
    names = demand.all_metrics()
    if not names:
        return Read()
    session = profile(
        device=gpu.device, activities=["kernel"], metrics=names, strategy="range", regions=call.label, repeatable=True
    )

    def once() -> None:
        with region(BETWEEN_SAMPLES):
            before_sample(gpu, call, cold, False)
        with region(call.label):
            call.function()
        gpu.synchronize()

    try:
        with session:
            session.repeat(once)
    except (CuptiError, SessionError) as e:
        return Read(notes=(f"counters could not be read: {e.message}",))
    result = session.result()
    about = result.metadata["counters"]
    units = {m["name"]: m["unit"] for m in about["metrics"]}
    counted = {n: result.counters[n] for n in units if n in result.counters}
    values = tuple(
        CounterValue(n, float(counted[n][0]) if len(counted.get(n, ())) else math.nan, unit)
        for n, unit in units.items()
    )
    wanted = {m.name for m in select(demand.metrics, about["chip"]).metrics} if demand.metrics else set()
    notes = [f"counters: {n}" for n in about.get("notes", ())]
    notes += [f"counter {n} was left out: {why}" for n, why in about.get("dropped", {}).items()]
    missing = [v.name for v in values if math.isnan(v.value)]
    if missing:
        notes.append(f"no value of {', '.join(missing[:5])}{' and others' if len(missing) > 5 else ''}")
    return Read(tuple(v for v in values if v.name in wanted), values, tuple(notes))
