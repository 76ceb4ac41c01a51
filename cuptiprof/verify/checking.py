"""Runs probes and compares what was measured with what follows from their launches."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cuptiprof import _core
from cuptiprof.counters.live import CounterWarning
from cuptiprof.errors import CuptiprofError, MetricError
from cuptiprof.session.profile import profile
from cuptiprof.text.nearest import nearest
from cuptiprof.verify import activity, arithmetic, control_flow, memory, occupancy_probes, times
from cuptiprof.verify.kernel_launch import Values
from cuptiprof.verify.machine import Machine
from cuptiprof.verify.probe import Counted, Expected, Measured, NotHereError, Probe, Traced

RIGHT, WRONG, SKIPPED, FAILED = "right", "wrong", "skipped", "failed"
"""Verdicts. Skipped: it means nothing here, or this GPU has no such metric. Failed: it could not be measured."""

_HELPERS = ("sm__inst_executed.sum", "sm__cycles_active.sum")
"""What an expectation that follows from measured numbers may use."""

_NOTHING_LOST = Expected("records lost", 0, "every record of so little work arrives")


@dataclass(frozen=True)
class Check:
    """One number of one probe. `expected` and `measured` are NaN where there is none; `reason` says why. `or_more`: more is right too."""

    probe: str
    subject: str
    metric: str
    expected: float
    measured: float
    allowed: float
    verdict: str
    why: str
    reason: str = ""
    or_more: bool = False


def all_probes() -> dict[str, Probe]:
    """Every probe by name, in the order in which they run."""
    parts = (activity, times, arithmetic, control_flow, memory, occupancy_probes)
    return {p.name: p for part in parts for p in part.probes()}


def choose(names: Sequence[str] | None) -> list[Probe]:
    """Probes by name, or all.

    Raises:
        MetricError: there is no such probe.
    """
    known = all_probes()
    for name in names or ():
        if name not in known:
            near = nearest(name, known, 5)
            raise MetricError(f"unknown probe {name!r}", hint=f"did you mean {', '.join(near)}?" if near else "")
    return [known[n] for n in dict.fromkeys(names)] if names else list(known.values())


def run_probes(machine: Machine, probes: Iterable[Probe], progress: Callable[[str], None] | None = None) -> list[Check]:
    """Run them one after the other; whatever happens to one, the others run.

    Args:
        progress: called with the name of each probe before it runs.
    """
    checks: list[Check] = []
    for probe in probes:
        if progress:
            progress(probe.name)
        try:
            plan = probe.plan(machine)
            if isinstance(plan, Counted):
                values, missing, reason = _count(machine, plan)
                expected = plan.expected
            elif isinstance(plan, Measured):
                (values, reason), missing = plan.measure(machine), {}
                expected = plan.expected
            else:
                values, missing, reason = _trace(machine, plan), {}, ""
                expected = (*plan.expected, _NOTHING_LOST)
        except NotHereError as e:
            checks.append(_none(probe, "", SKIPPED, str(e)))
        except CuptiprofError as e:
            checks.append(_none(probe, "", FAILED, str(e).replace("\n", " ")))
        else:
            simulated = machine.facts.simulated
            checks += [_check(probe, e, values, missing, simulated, reason) for e in expected]
        finally:
            machine.release()
    return checks


def _trace(machine: Machine, plan: Traced) -> Values:
    with profile(device=machine.device) as session:
        plan.work(machine)
        machine.gpu.synchronize()
    result = session.result()
    return {**plan.measure(result), _NOTHING_LOST.metric: float(sum(result.losses.values()))}


def _count(machine: Machine, plan: Counted) -> tuple[Values, dict[str, str], str]:
    """Measured numbers by key, the metrics that this GPU lacks with the reason, and why others could not be measured."""
    wanted = {e.metric for e in plan.expected} - set(plan.words)
    if any(callable(e.value) for e in plan.expected):
        wanted |= set(_HELPERS)
    names, missing = _available(sorted(wanted), machine)
    values: dict[str, float] = {}
    refusals: list[str] = []
    if names:
        for launch in plan.launches:
            machine.prepare(launch)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", CounterWarning)
            with profile(device=machine.device, metrics=names, strategy="replay", kernels="probe_*") as session:
                for launch in plan.launches:
                    machine.launch(launch)
                machine.gpu.synchronize()
            counters: Any = session.result().counters
        refusals = [" ".join(str(w.message).split()) for w in caught if issubclass(w.category, CounterWarning)]
        for name in names:
            if name not in counters:  # nothing was counted
                continue
            column = np.asarray(counters[name], np.float64)
            values |= {f"{name}[{i}]" if i else name: float(v) for i, v in enumerate(column)}
        values |= {
            e.key: values.get(f"{e.metric}[{e.launch}]" if e.launch else e.metric, math.nan)
            - values.get(f"{e.metric}[{e.minus}]" if e.minus else e.metric, math.nan)
            for e in plan.expected
            if e.minus is not None
        }
        for quantity, buffer in plan.words.items():
            word = machine.word(buffer)
            values[quantity] = math.nan if word is None else word
    return values, missing, "; ".join(refusals)


def _available(names: Sequence[str], machine: Machine) -> tuple[list[str], dict[str, str]]:
    from cuptiprof.metrics import resolve

    chip = machine.facts.chip
    planner = _core.MetricPlanner(machine.device.library, chip)
    here, missing = [], {}
    for name in names:
        try:
            inputs = [i for m in resolve([name], chip) for i in m.inputs]
        except MetricError as e:
            missing[name] = str(e).splitlines()[0]
            continue
        unknown = [i for i in inputs if planner.properties(i) is None]
        if unknown:
            missing[name] = f"{chip} has no {unknown[0]}"
        else:
            here.append(name)
    return here, missing


def _check(
    probe: Probe, expected: Expected, values: Values, missing: dict[str, str], simulated: bool, reason: str = ""
) -> Check:
    if expected.hardware_only and simulated:
        return _none(probe, expected.key, SKIPPED, "the simulated device runs no kernels", expected.why)
    if expected.metric in missing:
        return _none(probe, expected.key, SKIPPED, missing[expected.metric], expected.why)
    try:
        value = float(expected.value(values) if callable(expected.value) else expected.value)
    except (KeyError, ZeroDivisionError):
        return _none(probe, expected.key, FAILED, "what it follows from was not measured", expected.why)
    measured = values.get(expected.key, math.nan)
    if math.isnan(measured):
        return Check(
            probe.name, probe.subject, expected.key, value, measured, 0, FAILED, expected.why, reason or "not measured"
        )
    allowed = expected.allowed(value)
    too_far = value - measured if expected.or_more else abs(measured - value)
    verdict = RIGHT if too_far <= allowed else WRONG
    return Check(
        probe.name,
        probe.subject,
        expected.key,
        value,
        measured,
        allowed,
        verdict,
        expected.why,
        or_more=expected.or_more,
    )


def _none(probe: Probe, key: str, verdict: str, reason: str, why: str = "") -> Check:
    return Check(probe.name, probe.subject, key, math.nan, math.nan, math.nan, verdict, why or probe.what, reason)
