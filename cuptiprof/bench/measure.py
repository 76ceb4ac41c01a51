"""``cuptiprof.bench``: warm up, take samples in blocks until a rule is content, then read counters."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast, overload

import numpy as np

from cuptiprof.bench.attained import make_roofline, roof_notes
from cuptiprof.bench.case import Case
from cuptiprof.bench.counted_calls import Demand, read_counters
from cuptiprof.bench.environment import environment
from cuptiprof.bench.inputs import bind, name_of, rotating, split_keywords
from cuptiprof.bench.open_gpu import open_gpu
from cuptiprof.bench.options import Options
from cuptiprof.bench.over_ranks import Ranks, TorchRanks
from cuptiprof.bench.reference import check_result
from cuptiprof.bench.resources import Resources, measure_resources
from cuptiprof.bench.results.measurement import Measurement
from cuptiprof.bench.results.parts import Float64, Interval, Scalar
from cuptiprof.bench.results.points import labels
from cuptiprof.bench.sampling import MeasuredCall, Strategy, make_strategy
from cuptiprof.bench.sampling.clock_log import MAX_CLOCK_CHANGE, ClockLog
from cuptiprof.bench.sampling.kernel import OWN_REGION_PREFIX, SIMULATED_STEP_NS
from cuptiprof.bench.sampling.series import (
    Series,
    Spoilt,
    clocks_of,
    gap_note,
    kernel_times,
    pace_note,
    reported_by,
    spans_of,
    times_of,
    values_of,
)
from cuptiprof.bench.sampling.strategy import Sample, cycle_of
from cuptiprof.bench.sampling.throttling import Throttling
from cuptiprof.bench.sampling.warmup import Warmup, look_at, nothing_launched, warm_up
from cuptiprof.data.clock_state import ClockTarget
from cuptiprof.device.devices import Device
from cuptiprof.device.gpu import Meter
from cuptiprof.device.locked_clocks import locked_clocks
from cuptiprof.errors import BenchError
from cuptiprof.sim.pytorch.compiled_calls import UNCOMPILED
from cuptiprof.stats.noise import describe_noise
from cuptiprof.stats.statistics import MedianInterval, median_interval
from cuptiprof.stats.stopping import Rule, Stop, TimeLimit, default_rule
from cuptiprof.text.nearest import did_you_mean
from cuptiprof.text.units import format_time

if TYPE_CHECKING:
    from typing_extensions import Unpack

FIRST_BLOCK_SAMPLES = 10
"""Shows how long a sample takes; fewer of functions that would take longer than there is time."""
MIN_SECONDS = 0.2
"""Measuring takes at least so long on a real clock, however narrow the interval, unless a limit ends it: a burst of milliseconds sees
one state of the machine, and the next burst another."""
MAX_BLOCK_SECONDS = 0.5
"""No block is longer: a lost record costs all of its block."""
MAX_BLOCK_SAMPLES = 2000
MAX_BLOCK_RECORDS = 500_000
"""A block of calls with many kernels is smaller, so that the records of all fit into the budget of a session."""
MAX_EMPTY_BLOCKS = 3
"""So many blocks in a row without a usable sample end the measurement."""

CLOCK_NAMES = ("base", "max")
L2_STATES = ("warm", "cold", "rotate")

WORTH_SAYING = 0.005
"""Half of an interval over the median, from which a reader should know that it is the clock's."""

Function = Callable[..., object]


@dataclass(frozen=True)
class Method:
    """How to measure: options, checked."""

    strategy: Strategy
    l2: str
    rule: Rule
    max_seconds: float
    warmup_seconds: float
    demand: Demand
    lock_clocks: ClockTarget | None = None
    energy: bool = False
    memory: bool = False
    over_ranks: bool = False

    @staticmethod
    def of(options: Options, device: str | Device | None, *, functions: int = 1) -> Method:
        """For so many functions in turn. Raises BenchError for what does not fit together."""
        strategy = make_strategy(options.get("strategy", "cpu" if device == "host" else "kernel"))
        l2 = options.get("l2", "warm")
        if l2 not in L2_STATES:
            raise BenchError(
                f"unknown l2={l2!r}{did_you_mean(str(l2), L2_STATES)}", hint=f"one of: {', '.join(L2_STATES)}"
            )
        if l2 != "warm" and not strategy.can_be_cold:
            raise BenchError(
                f'l2="{l2}" says nothing of strategy {strategy.name!r}',
                hint="host time does not depend on the GPU's caches",
            )
        seconds = {"max_seconds": options.get("max_seconds", 3.0), "warmup_seconds": options.get("warmup_seconds", 1.0)}
        for name, value in seconds.items():
            if not (isinstance(value, (int, float)) and 0 < value < math.inf):
                raise BenchError(f"{name}={value!r} is not a positive number of seconds")
        stop = options.get("stop")
        if stop is not None and not isinstance(stop, Rule):
            raise BenchError(
                f"stop={stop!r} is no rule", hint="of cuptiprof.bench: Count(500), RelativeHalfWidth(0.01)"
            )
        limit = seconds["max_seconds"] * functions
        rule = (stop or default_rule(seconds=limit)) | TimeLimit(limit)
        demand = Demand.make(
            options.get("metrics", ()), options.get("flops"), options.get("bytes"), options.get("dtype", "")
        )
        target = options.get("lock_clocks")
        if target not in (None, "base", "max") and not (type(target) is int and target > 0):
            raise BenchError(
                f"lock_clocks={target!r} is no clock{did_you_mean(str(target), CLOCK_NAMES)}",
                hint='"base", "max", or MHz: lock_clocks=1500',
            )
        also = {name: bool(options.get(name, False)) for name in ("energy", "memory", "over_ranks")}
        return Method(strategy, l2, rule, limit, seconds["warmup_seconds"], demand, target, **also)

    @property
    def cold(self) -> bool:
        """The L2 is flushed before each sample."""
        return self.l2 == "cold"


@overload
def bench(
    function: Function,
    /,
    *args: Any,
    name: str = "",
    params: Mapping[str, Scalar] | None = None,
    setup: Function | None = None,
    check: Any = None,
    device: str | Device | None = None,
    **options: Unpack[Options],
) -> Measurement: ...
@overload
def bench(function: Function, /, *args: Any, **keywords: Any) -> Measurement: ...
def bench(
    function: Function,
    /,
    *args: Any,
    name: str = "",
    params: Mapping[str, Scalar] | None = None,
    setup: Function | None = None,
    check: Any = None,
    device: str | Device | None = None,
    **keywords: Any,
) -> Measurement:
    """Measure a function that gives the GPU work, until its median is known well enough.

    Args:
        function: called again and again with `args` and those keywords that are no options; its result is dropped.
        name: in reports; default: the function's own.
        params: in reports: at which point of a sweep this is.
        setup: called before each sample outside of the time, for functions that change their input.
        check: what the function has to give, see :class:`cuptiprof.bench.Case`.
        device: as of ``cuptiprof.profile``; simulated devices run with a virtual clock here. "host": there is no GPU, and host
            time is what is measured unless ``strategy`` says otherwise.
        keywords: how to measure: ``strategy``, ``metrics``, ``flops``, ``bytes``, ``dtype``, ``l2``, ``stop``, ``max_seconds``,
            ``warmup_seconds``, ``lock_clocks``, ``energy``, ``memory``, ``over_ranks``, ``stream``, see :class:`cuptiprof.bench.Options`; others are the function's.

    Raises:
        BenchError: the function gives the GPU nothing to do, cannot be captured, loses its records, gives something else than
            `check`, or the arguments clash.
        TypeError: a keyword that is neither an option nor a parameter of the function.
        DeviceError, CuptiError, SessionError, MetricError: as ``cuptiprof.profile`` on start.
        Exception: whatever the function raises, as it is.
    """
    options, given = split_keywords("bench", function, args, keywords)
    cases = {name or name_of(function): Case(function, setup, check)}
    return measure_cases(cases, options, device, args, given, params)[0]


def measure_cases(
    cases: Mapping[str, Case],
    options: Options,
    device: str | Device | None,
    args: Sequence[Any] = (),
    keywords: Mapping[str, Any] | None = None,
    params: Mapping[str, Scalar] | None = None,
    demands: Sequence[Demand] = (),
) -> list[Measurement]:
    """Measure functions in turn, each with the same arguments; see :func:`bench`.

    Args:
        demands: of each, where they are not the same.
    """
    given = dict(keywords or {})
    method = Method.of(options, device, functions=len(cases))
    calls = [make_call(name, case, args, given, i) for i, (name, case) in enumerate(cases.items())]
    shown = labels(params or {})
    ranks = TorchRanks() if method.over_ranks else Ranks()
    for call in calls:
        call.agree = ranks.largest
    with open_gpu(device, options.get("stream")) as gpu, locked_clocks(gpu.clocks, method.lock_clocks):
        wanted = demands or [method.demand] * len(calls)
        for demand in wanted:
            demand.check(gpu)
        for call, case in zip(calls, cases.values(), strict=True):
            if case.check is not None:
                if case.setup is not None:
                    case.setup()
                check_result(call.name, call.function, case.check, lambda reference: reference(*args, **given))
            if method.l2 == "rotate":
                call.function, call.copies = rotating(case.function, args, given, gpu.flush_bytes)
        return measure(gpu, calls, method, shown, wanted, ranks)


def measure_in_turn(
    cases: Mapping[str, Case], options: Sequence[Mapping[str, Any]], device: str | Device | None
) -> list[Measurement]:
    """Measure functions in turn whose operations, bytes and element types may differ: `options` of each."""
    first: Any = options[0]
    demands = [Method.of(cast("Options", o), device).demand for o in options]
    return measure_cases(cases, first, device, demands=demands)


def make_call(name: str, case: Case, args: Sequence[Any], keywords: Mapping[str, Any], index: int) -> MeasuredCall:
    """Raises BenchError when its function or set-up is none."""
    if not callable(case.function):
        raise BenchError(
            f"bench() measures a function, not {type(case.function).__name__}",
            hint="pass the function and its arguments, `bench(f, x)`, or `lambda: f(x)`; not `f(x)`",
        )
    if case.setup is not None and not callable(case.setup):
        raise BenchError(f"setup= is a function, not {type(case.setup).__name__}")
    bound = bind(case.function, args, keywords)
    return MeasuredCall(name, bound, case.setup, label=f"{OWN_REGION_PREFIX}{index}")


@dataclass
class _State:
    """One call on its way through the phases."""

    series: Series
    warmup: Warmup
    notes: list[str]
    stop: Stop | None = None
    cost: dict[str, float] = field(default_factory=dict)


def measure(
    gpu: Meter,
    calls: Sequence[MeasuredCall],
    method: Method,
    params: Mapping[str, Scalar],
    demands: Sequence[Demand],
    ranks: Ranks,
) -> list[Measurement]:
    """Warm up each call, then take samples of all in turn until the rule is content with each.

    Raises:
        BenchError: see :func:`bench`.
    """
    states = [_prepare(gpu, call, method) for call in calls]
    began = time.monotonic()
    throttling = Throttling(gpu, _normal_mhz(gpu, method.lock_clocks))
    clocks = _sample(gpu, states, method, throttling, ranks)
    measuring = time.monotonic() - began
    spoilt = _spoilt_by(clocks, throttling)
    others = gpu.clocks.others()
    out = []
    for state, demand in zip(states, demands, strict=True):
        state.cost["measuring"] = measuring / len(states)
        samples = state.series.accepted(spoilt)
        began = time.monotonic()
        counters = read_counters(gpu, state.series.call, demand, method.cold)
        state.cost["counters"] = time.monotonic() - began
        used = Resources()
        if method.energy or method.memory:
            used = measure_resources(
                gpu,
                state.series.call,
                state.warmup.call_ns,
                method.max_seconds,
                energy=method.energy,
                memory=method.memory,
            )
            state.cost["resources"] = time.monotonic() - began - state.cost["counters"]
        notes = [*state.notes, *state.series.call.notes, *clocks.notes(), *throttling.notes(samples)]
        notes += [*stamp_notes(gpu), *gap_note(samples), *counters.notes, *used.notes]
        notes += [*ranks.notes(), *pace_note(state.series)]
        if state.series.differs():
            notes.append("its calls do not all launch the same kernels")
        if others:
            notes.append(f"other programs use this GPU: process {', '.join(map(str, others[:5]))}")
        values = values_of(samples)
        notes += describe_noise(values).sentences(format_time)
        tick = state.series.call.tick
        interval = median_interval(values, tick=tick)
        notes += interval_notes(interval)
        sm_hz, summary = clocks_of(samples), clocks.summary()
        if method.lock_clocks is not None:
            summary["locked"] = method.lock_clocks
        if len(sm_hz):
            summary.setdefault("sm_mhz", round(float(np.nanmedian(sm_hz)) / 1e6, 1))
        notes += lock_notes(method.lock_clocks, sm_hz)
        roofline = None
        if method.strategy.times_work or gpu.device is None:
            roofline = make_roofline(gpu, demand, counters, interval.median, summary)
        notes += roof_notes(roofline, method.l2)
        out.append(
            Measurement(
                name=state.series.call.name,
                params=params,
                strategy=method.strategy.name,
                l2=method.l2,
                samples=values,
                times=times_of(samples),
                span=spans_of(samples),
                sm_hz=sm_hz,
                batch=state.series.call.batch,
                tick=math.nan if tick is None else tick,
                interval=Interval(interval.median, interval.low, interval.high, interval.confidence),
                stopped_by=state.stop.reason if state.stop else "",
                converged=state.stop is not None and state.stop.converged,
                discarded=state.series.discarded(spoilt),
                warmup_calls=state.warmup.calls,
                first_call_ns=state.warmup.first_ns,
                kernels=kernel_times(samples),
                reported=reported_by(samples),
                counters=counters.values,
                energy_per_call=used.energy_j,
                peak_memory=used.peak_memory,
                roofline=roofline,
                notes=tuple(notes),
                cost=state.cost,
                environment={**environment(gpu), "clocks": summary},
            )
        )
    return out


def interval_notes(interval: MedianInterval) -> list[str]:
    """Why an interval is wider than the noise, or none is claimed."""
    if math.isnan(interval.tick):
        return ["its samples are equal, and the tick of their clock is not known: no interval is claimed"]
    if interval.coarse and interval.half_width > WORTH_SAYING:
        return [f"its clock steps by {format_time(interval.tick)}, more than its noise: a longer call is known better"]
    if interval.confidence == 0 and interval.samples > 1:
        worth = f"{interval.samples} samples are worth {interval.effective:.0f} independent ones"
        return [f"no interval is claimed: {worth}; measure for longer (max_seconds=)"]
    return []


def _prepare(gpu: Meter, call: MeasuredCall, method: Method) -> _State:
    began = time.monotonic()
    compiled = gpu.device.compiled_calls if gpu.device is not None else 0
    warmup = warm_up(gpu, call, method.warmup_seconds)
    notes = [*warmup.notes, *look_at(gpu, call, method.strategy)]
    if gpu.device is not None and gpu.device.compiled_calls > compiled:
        notes.append(UNCOMPILED)
    call.records, call.longest_ns = round(call.agree(call.records)), call.agree(call.longest_ns)
    call.launches, call.synchronizes = bool(call.agree(call.launches)), bool(call.agree(call.synchronizes))
    simulated = gpu.device is not None and gpu.device.simulated
    call.step_ns = SIMULATED_STEP_NS if simulated and method.strategy.clock_step_ns else method.strategy.clock_step_ns
    method.strategy.prepare(gpu, call, warmup.call_ns, method.cold)
    return _State(Series(call), warmup, notes, cost={"warmup": time.monotonic() - began})


def _normal_mhz(gpu: Meter, target: ClockTarget | None) -> float:
    """What the SM clock should be where it is locked; 0: the highest that the GPU has."""
    if target == "base":
        state = gpu.clocks.read()
        return state.sm_mhz if state is not None else 0.0
    return float(target) if isinstance(target, int) else 0.0


def lock_notes(target: ClockTarget | None, sm_hz: Float64) -> list[str]:
    """Where the clock was another one than it was locked to."""
    if not isinstance(target, int) or not len(sm_hz):
        return []
    ran = float(np.nanmedian(sm_hz)) / 1e6
    off = abs(ran - target) > MAX_CLOCK_CHANGE * target
    return [f"the SM clock was {ran:.0f} MHz, though locked to {target}"] if off else []


def stamp_notes(gpu: Meter) -> list[str]:
    """Why the SM clock is not known, where it should be."""
    return [f"the SM clock was not read on the GPU: {gpu.why_no_stamps}"] if gpu.why_no_stamps else []


def _spoilt_by(clocks: ClockLog, throttling: Throttling) -> Spoilt:
    """Why the clocks forbid to use a sample."""
    clocks.least_mhz = throttling.least_mhz
    around = clocks.judge()

    def spoilt(sample: Sample) -> str:
        return around(sample.at) or throttling.spoils(sample)

    return spoilt


def _sample(gpu: Meter, states: list[_State], method: Method, throttling: Throttling, ranks: Ranks) -> ClockLog:
    """Blocks of samples until the rule is content with every call, or time is up."""
    log = ClockLog(gpu.clocks, gpu.now, gpu.synchronize)
    log.read()
    calls = [s.series.call for s in states]
    simulated = gpu.device is not None and gpu.device.simulated
    least = 0.0 if simulated else min(MIN_SECONDS * len(calls), method.max_seconds)
    began = time.monotonic()
    runs = 2 if len(calls) > 1 and not method.cold else 1  # a sample among others may have a run before it
    one_round = runs * sum(s.warmup.call_s for s in states)
    most = min(MAX_BLOCK_SAMPLES, MAX_BLOCK_RECORDS // max(runs * sum(c.records for c in calls), 1))
    cycle = cycle_of(len(calls))
    block_size = _whole(int(min(FIRST_BLOCK_SAMPLES, most, method.max_seconds / max(one_round, 1e-9))), cycle)
    empty = 0
    while True:
        block_began, readings = time.monotonic(), log.readings
        blocks = method.strategy.rounds(gpu, calls, block_size, method.cold, log.tick)
        log.read()
        for state, block in zip(states, blocks, strict=True):
            state.series.taken += block
        if ranks.largest(log.capped_since(readings)):
            throttling.take_as_it_is()
        slowed = log.slowed_since(readings) or any(throttling.spoils(s) for block in blocks for s in block)
        paused = throttling.cool_down(bool(ranks.largest(slowed)))
        spoilt = _spoilt_by(log, throttling)
        for state in states:
            state.series.join(ranks, spoilt)
            tick = ranks.largest(state.series.call.step_ns or 0.0)
            state.series.call.step_ns = tick or state.series.call.step_ns
        elapsed = ranks.largest(time.monotonic() - began - throttling.paused_s)
        usable = [values_of(s.series.accepted(spoilt)) for s in states]
        nothing = not all(map(len, usable))
        empty = empty + (not paused) if nothing else 0
        if empty >= MAX_EMPTY_BLOCKS:
            raise _nothing_usable(states, spoilt)
        if nothing:
            continue  # as many again: waiting for records that do not come says nothing of how long a sample takes
        for state, values in zip(states, usable, strict=True):
            # A call that is known well enough goes on as the others need it: they are measured in turn.
            state.stop = method.rule(values, elapsed, state.series.call.tick)
        stops = [s.stop for s in states if s.stop]
        if len(stops) == len(states) and (elapsed >= least or not all(stop.converged for stop in stops)):
            return log
        took = max(ranks.largest(time.monotonic() - block_began), 1e-6)
        fits = int(block_size * min(MAX_BLOCK_SECONDS, max(method.max_seconds - elapsed, 0.0)) / took)
        have = min(map(len, usable))  # the rule does not count what is discarded
        block_size = _whole(int(min(method.rule.next_look(have) - have, fits, most)), cycle)


def _whole(n: int, cycle: int) -> int:
    """Whole cycles of orders (see ``orders``); of fewer, whole pairs of rounds there and back, on which comparing relies."""
    return n // cycle * cycle or max(2, n // 2 * 2)


def _nothing_usable(states: list[_State], spoilt: Spoilt) -> BenchError:
    for state in states:
        discarded = state.series.discarded(spoilt)
        if len(discarded) < len(state.series.taken):
            continue
        why = max({d.reason for d in discarded}, key=[d.reason for d in discarded].count)
        name = state.series.call.name
        hint = "cool the GPU or lock its clocks (nvidia-smi -lgc), then measure again"
        if "lost" in why:
            hint = 'strategy="event" needs no records; `cuptiprof doctor` says more'
        return BenchError(f"none of the {len(discarded)} samples of {name!r} can be used: {why}", hint=hint)
    return nothing_launched(states[0].series.call.name, 0)
