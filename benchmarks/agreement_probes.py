"""The probes of ``cuptiprof verify`` under both tools: python -m benchmarks.agreement_probes launches them, for ncu to wrap.

Both see the same launches in the same order, each probe's own metrics written out as the counters behind them. A counter is
compared on the launches of the probes that state it: what it is elsewhere, a few bytes of another kernel's, is noise.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.agreement_compare import Row, tolerance_of
from cuptiprof import _core, verify
from cuptiprof.errors import CuptiprofError, MetricError
from cuptiprof.metrics import resolve
from cuptiprof.verify.probe import NotHereError

PART = "ncu, probes"
KERNELS = "probe_*"
NCU_KERNELS = "regex:^probe_"
Launched = tuple[str, Mapping[str, float]]
"""Kernel name, and values by counter."""


@dataclass(frozen=True)
class Work:
    """A counted probe: its launches, and the counters that its metrics are made of."""

    probe: str
    launches: tuple[verify.KernelLaunch, ...]
    counters: tuple[str, ...]


def counters_behind(metrics: Iterable[str], chip: str, planner: _core.MetricPlanner) -> Iterator[str]:
    """The perfworks counters that these metrics are made of; those that the chip lacks are left out."""
    for name in metrics:
        try:
            inputs = [i for m in resolve([name], chip) for i in m.inputs]
        except MetricError:
            continue
        if all(planner.properties(i) is not None for i in inputs):
            yield from inputs


def planned(machine: verify.Machine, names: Sequence[str] | None = None) -> Iterator[tuple[str, verify.Counted]]:
    """The probes of counters that can run on this machine, by name; `names`: only these."""
    for probe in verify.choose(names):
        try:
            plan = probe.plan(machine)
        except (NotHereError, CuptiprofError):
            continue  # verify itself reports it
        if isinstance(plan, verify.Counted):
            yield probe.name, plan


def counted_work(machine: verify.Machine, names: Sequence[str] | None = None) -> list[Work]:
    """Those with a counter that this chip has."""
    chip = machine.facts.chip
    planner = _core.MetricPlanner(machine.device.library, chip)
    out = []
    for name, plan in planned(machine, names):
        metrics = [e.metric for e in plan.expected if e.metric not in plan.words]
        out.append(Work(name, plan.launches, tuple(dict.fromkeys(counters_behind(metrics, chip, planner)))))
    return [w for w in out if w.counters]


def all_counters(work: Iterable[Work]) -> list[str]:
    """Each counter once, in order."""
    return list(dict.fromkeys(c for w in work for c in w.counters))


def launch_all(machine: verify.Machine, work: Iterable[Sequence[verify.KernelLaunch]]) -> None:
    """Every probe's launches in order, each probe in memory of its own."""
    for launches in work:
        for launch in launches:
            machine.prepare(launch)
        for launch in launches:
            machine.launch(launch)
        machine.release()
    machine.gpu.synchronize()


def count_ours(machine: verify.Machine, work: Sequence[Work]) -> list[Launched]:
    """Each launch's counters as cuptiprof reads them; NaN where a launch has no value.

    Raises:
        CuptiprofError: counters cannot be had.
    """
    from cuptiprof import profile

    out: list[Launched] = []
    # A session a probe, as `verify` does it: a set of all counters would need more passes than any of them.
    for w in work:
        with profile(device=machine.device, metrics=list(w.counters), strategy="replay", kernels=KERNELS) as session:
            launch_all(machine, [w.launches])
        result = session.result()
        columns = {c: np.asarray(result.counters[c], np.float64) for c in w.counters if c in result.counters}
        for i, name in enumerate(map(str, result.metric_ranges["name"])):
            out.append((name, {c: float(v[i]) for c, v in columns.items() if i < len(v)}))
    return out


def compare_probes(work: Sequence[Work], ours: Sequence[Launched], theirs: Sequence[Launched]) -> list[Row]:
    """Launch by launch in order; names must be equal, and a counter that only one has is a row that disagrees."""
    launches = [(w, i) for w in work for i in range(len(w.launches))]
    rows = [
        Row(PART, "(all)", "launches, cuptiprof", len(ours), len(launches), 0),
        Row(PART, "(all)", "launches, ncu", len(launches), len(theirs), 0),
    ]
    if len(ours) != len(launches) or len(theirs) != len(launches):
        return rows  # nothing says which is which
    for (w, i), (our_name, mine), (their_name, other) in zip(launches, ours, theirs, strict=True):
        kernel = w.launches[i].kernel
        label = f"{w.probe}: {kernel}" + (f" [{i}]" if len(w.launches) > 1 else "")
        named = (our_name.partition("(")[0] == kernel) + (their_name.partition("(")[0] == kernel)
        rows.append(Row(PART, label, "names as launched", named, 2, 0))
        for counter in w.counters:
            a, b = mine.get(counter, math.nan), other.get(counter, math.nan)
            if math.isnan(a) or math.isnan(b):
                have = (not math.isnan(a)) + (not math.isnan(b))
                rows.append(Row(PART, label, f"{counter}: tools that have a value", have, 2, 0))
            else:
                rows.append(Row(PART, label, counter, a, b, tolerance_of(counter)))
    return rows


def main() -> None:
    """Launch the probes that are named. Plans nothing, so that ncu has the counters' libraries to itself."""
    machine = verify.open_machine("cuda")
    launch_all(machine, [plan.launches for _, plan in planned(machine, sys.argv[1:])])


if __name__ == "__main__":
    main()
