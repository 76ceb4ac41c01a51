"""A probe of times: short kernels' GPU time by user range, by automatic range and from their records, side by side."""

from __future__ import annotations

import operator
import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from cuptiprof.counters.live import CounterWarning
from cuptiprof.errors import CuptiprofError
from cuptiprof.regions.region import region
from cuptiprof.session.profile import profile
from cuptiprof.verify.kernel_launch import KernelLaunch, Values
from cuptiprof.verify.machine import Machine
from cuptiprof.verify.probe import Expected, Measured, Probe

if TYPE_CHECKING:
    from cuptiprof.data.result import Result

TIME = "gpu__time_duration.sum"
WAITS_US = (5, 50)
COUNT = 20  # of each; a median of so many is not moved by one that was disturbed
TOLERANCE, MARGIN_NS = 0.10, 2_000
"""How far a median by automatic range may be from that by record: a record's ends are taken elsewhere on the GPU."""

_START_NS = 10_000  # a kernel's record covers its launch on the GPU too, some microseconds


def _key(us: int, way: str) -> str:
    return f"{us} us kernel: {way}"


def _launch(us: int) -> KernelLaunch:
    return KernelLaunch("probe_spin", 1, 32, (us * 1000,), lasts=us * 1000)


def _medians(way: str, times: Any) -> dict[str, float]:
    """Of kernels of every length in the order of their launches; empty where some are missing."""
    if len(times) != COUNT * len(WAITS_US):
        return {}
    by_length = np.asarray(times, np.float64).reshape(len(WAITS_US), COUNT)
    return {_key(us, way): float(np.median(row)) for us, row in zip(WAITS_US, by_length, strict=True)}


def _run(machine: Machine, *, in_regions: bool = False) -> None:
    for us in WAITS_US:
        for _ in range(COUNT):
            if in_regions:
                with region("timed"):
                    machine.launch(_launch(us))
                    machine.gpu.synchronize()
            else:
                machine.launch(_launch(us))
                machine.gpu.synchronize()


def _in_order(result: Any, table: str) -> Any:
    rows = getattr(result, table)
    return np.argsort(rows["correlation_id"] if table == "kernels" else rows["start"], kind="stable")


def _durations(result: Any) -> Any:
    k = result.kernels
    return (k["end"] - k["start"])[_in_order(result, "kernels")]


def _counted(result: Any) -> Any:
    return result.counters[TIME][_in_order(result, "metric_ranges")] if TIME in result.counters else []


def _session(machine: Machine, refused: list[str], **options: Any) -> Result | None:
    """The result of a run with counters; what CUPTI refused, at its start or later, goes to `refused`."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", CounterWarning)
        try:
            with profile(device=machine.device, **options) as session:
                _run(machine, in_regions=options["strategy"] == "range")
        except CuptiprofError as e:
            refused.append(" ".join(str(e).split()))
            return None
    refused += [" ".join(str(w.message).split()) for w in caught if issubclass(w.category, CounterWarning)]
    return session.result()


def _measure(machine: Machine) -> tuple[Values, str]:
    """Three runs of the same kernels. What CUPTI refused comes as words."""
    machine.launch(_launch(1))  # there is a context from the first timed kernel on
    machine.gpu.synchronize()
    refused: list[str] = []
    with profile(device=machine.device, activities=["kernel"]) as traced:
        _run(machine)
    values = _medians("record", _durations(traced.result()))
    if automatic := _session(machine, refused, activities=["kernel"], metrics=[TIME], strategy="replay"):
        values |= _medians("record while counted", _durations(automatic))
        values |= _medians("automatic range", _counted(automatic))
    if user := _session(machine, refused, metrics=[TIME], strategy="range", regions="timed"):
        values |= _medians("user range", _counted(user))
    return values, "; ".join(dict.fromkeys(refused))


def _plan(machine: Machine) -> Measured:
    expected = []
    for us in WAITS_US:
        record = _key(us, "record")
        follows = operator.itemgetter(record)
        same = f"{TIME} and the record are the same kernel's time: within {TOLERANCE:.0%} or {MARGIN_NS // 1000} us"
        expected += [
            Expected(record, us * 1000, f"it waits {us} us by the GPU's clock; its start takes some", 0.01, _START_NS),
            Expected(_key(us, "record while counted"), follows, "counting in one pass changes nothing", TOLERANCE, MARGIN_NS),
            Expected(_key(us, "automatic range"), follows, same, TOLERANCE, MARGIN_NS),
            Expected(_key(us, "user range"), follows, "the kernel and whatever the host did between push and pop", TOLERANCE, MARGIN_NS, or_more=True),
        ]  # fmt: skip
    return Measured(_measure, tuple(expected))


def probes() -> Iterator[Probe]:
    """All probes of this subject."""
    yield Probe("times", "times", "short kernels' time by record, by automatic range and by user range", _plan)
