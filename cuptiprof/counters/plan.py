"""From a request to what the hardware will do: metrics, pass groups, strategy, and what that will cost."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from cuptiprof import _core
from cuptiprof.analysis.counter_values.counter_record import CounterRecord, MetricInfo
from cuptiprof.counters.choice import choose, inputs_of, passes_of
from cuptiprof.counters.controls import Controls, make_controls
from cuptiprof.counters.request import CounterRequest
from cuptiprof.device.plan_cache import CachedPlanner
from cuptiprof.errors import MetricError
from cuptiprof.metrics import Metric, resolve_events, resolve_section, resolve_set, select

if TYPE_CHECKING:
    from cuptiprof.filter.kernel_filter import KernelFilter

# Chips whose sampling can only be triggered by the system clock (CUPTI 13.0, cupti_pmsampling.h).
_CYCLE_TRIGGER = ("TU1", "GA100", "GV1")
_RING_MISSING = "TU1"  # Turing cannot overwrite its oldest samples (CUPTI 13.0, cupti_pmsampling.h)
# Room for a second of samples: a decoding thread that is kept waiting must not lose any. Bytes of a sample are those of
# occupancy, IPC and DRAM traffic on an H100.
_SAMPLE_BYTES = 6 << 10
_MIN_SAMPLE_BUFFER, _MAX_SAMPLE_BUFFER = 64 << 20, 512 << 20
_SYSTEM_CLOCK_HZ = 1.2e9  # nominal: samples carry their real times
# What in the name of a counter says that its value depends on how long was measured.
_TIMED = ("per_second", "elapsed", "gpu__time")
# Units of PCIe and NVLink, which are the device's: before CUDA 13.1 its list of counters lacks them.
_LINKS = ("pcie", "nvl", "ctc")


@dataclass(frozen=True)
class CounterPlan:
    """How a request is carried out on one chip.

    Attributes:
        request: what was asked for.
        chip: CUPTI's name of it, "GH100".
        strategy: "replay", "iterate", "range" or "sample".
        metrics: what is reported.
        groups: perfworks metrics that are read together, with the image that configures the hardware.
        dropped: names of a preset, set or section that CUPTI, or the strategy, cannot count, with the reason.
        controls: what is done to caches and clocks.
    """

    request: CounterRequest
    chip: str
    strategy: str
    metrics: tuple[Metric, ...]
    groups: tuple[_core.PassGroup, ...]
    dropped: dict[str, str] = field(default_factory=dict)
    controls: Controls = field(default_factory=Controls)

    @property
    def passes(self) -> int:
        """How often the work must run to have every value."""
        return passes_of(self.groups)

    def options(self, kernel_filter: KernelFilter | None) -> _core.CounterOptions:
        """What the native session needs. `kernel_filter`: chooses the launches that are counted; None: all."""
        by_cycles = self.chip.startswith(_CYCLE_TRIGGER)
        interval = self.request.interval_ns
        return _core.CounterOptions(
            strategy=self.strategy,
            chip=self.chip,
            groups=list(self.groups),
            filter=kernel_filter.native if kernel_filter is not None else None,
            communicating=self.request.communicating,
            resets_caches=self.controls.caches == "all",
            clocks=self.controls.mode,
            clocks_are_wanted=self.controls.wanted,
            levels=self.request.region_levels,
            interval=max(int(interval * _SYSTEM_CLOCK_HZ / 1e9), 1) if by_cycles else interval,
            interval_in_cycles=by_cycles,
            keep_latest=not self.chip.startswith(_RING_MISSING),
            hardware_buffer=min(max(_SAMPLE_BYTES * 10**9 // interval, _MIN_SAMPLE_BUFFER), _MAX_SAMPLE_BUFFER),
        )

    def cost(self) -> str:
        """What it will do to the program, in a sentence."""
        n = self.passes
        if self.strategy == "sample":
            return (
                f"the device is sampled every {self.request.interval_ns / 1000:g} us; nothing is serialised or replayed"
            )
        if self.strategy == "iterate":
            return f"each selected kernel is measured alone, never replayed; {n} steps or occurrences fill every metric"
        if self.strategy == "range":
            times = "as the program goes" if n == 1 else f"over {n} runs of the repeated work"
            return f"selected regions are measured {times}"
        if n == 1:
            return "each selected kernel is measured alone, in the one run it makes anyway"
        return f"each selected kernel runs {n} times, alone; its memory is saved and restored between"

    @property
    def over_the_regions_time(self) -> list[str]:
        """Metrics that are rates over a region's time, from entry to exit with the host's part of it; of `range` only."""
        if self.strategy != "range":
            return []
        return [m.name for m in self.metrics if any(part in i for i in m.inputs for part in _TIMED)]

    def record(self) -> CounterRecord:
        """What the result says of it, but for what only the run can tell."""
        return CounterRecord(
            strategy=self.strategy,
            chip=self.chip,
            passes=self.passes,
            metrics=list(map(info_of, self.metrics)),
            groups=[list(g.metrics) for g in self.groups],
            dropped=dict(self.dropped),
            cache_control=self.controls.caches,
            clock_control=self.controls.clocks,
            over_the_regions_time=self.over_the_regions_time,
            sampling_interval_ns=self.request.interval_ns if self.strategy == "sample" else None,
        )

    def explain(self) -> str:
        """Metrics, expressions, passes, strategy and cost, as text for people."""
        width = max((len(m.name) for m in self.metrics), default=0)
        lines = [
            f"Chip {self.chip}, strategy {self.strategy}, {self.passes} pass{'' if self.passes == 1 else 'es'}",
            f"Cost: {self.cost()}",
            "",
            "Metrics",
        ]
        lines += [f"  {m.name:{width}}  = {m.expression}" for m in self.metrics]
        lines += ["", "Pass groups"]
        for i, g in enumerate(self.groups, 1):
            lines.append(f"  {i} ({g.passes} pass{'' if g.passes == 1 else 'es'}): {', '.join(g.metrics)}")
        if self.dropped:
            lines += ["", "Left out"]
            lines += [f"  {name}: {reason}" for name, reason in self.dropped.items()]
        return "\n".join(lines)


def info_of(m: Metric) -> MetricInfo:
    """What the result says of a metric."""
    return MetricInfo(
        name=m.name,
        unit=m.unit,
        description=m.description,
        expression=m.expression,
        status=m.status,
        kind="event" if m.category == "event" else "metric",
        value_kind=m.kind,
        category=m.category,
        inputs=list(m.inputs),
    )


def make_plan(request: CounterRequest, library: _core.CuptiLibrary, chip: str, *, stepped: bool) -> CounterPlan:
    """Plan a request for a chip; loads NVIDIA's planning library unless the plan is in the cache.

    Args:
        stepped: the program calls ``step()``, so that "auto" may spread passes over steps.

    Raises:
        MetricError: unknown metrics, ones the chip lacks, or ones the strategy cannot collect (with what can).
    """
    sampling = request.strategy == "sample"
    planner = CachedPlanner(library, chip, sampling)
    metrics, dropped = resolve_request(
        request,
        planner,
        chip,
        sampling=sampling,
        chips_with=lambda name: _core.chips_with_metric(library, name, sampling),
    )
    inputs = inputs_of(metrics)
    if not inputs:
        raise MetricError("nothing is left to count", hint="; ".join(f"{k}: {v}" for k, v in dropped.items()))
    if image := _availability(library, sampling, inputs):
        planner = CachedPlanner(library, chip, sampling, image)
    strategy, counted, groups, left_out = choose(request, planner, metrics, stepped=stepped)
    if (strategy == "sample" or (strategy == "range" and not request.repeatable)) and passes_of(groups) > 1:
        raise _too_many_passes(strategy, groups, planner, inputs, metrics)
    controls = make_controls(request.cache_control, request.clock_control, strategy, library)
    return CounterPlan(request, chip, strategy, tuple(counted), tuple(groups), dropped | left_out, controls)


def _availability(library: _core.CuptiLibrary, sampling: bool, inputs: Sequence[str]) -> bytes:
    """The device's own list of counters, to plan with; empty: plan with all that the chip has."""
    image, has_links = _core.counter_availability(library, sampling)
    return image if has_links or not any(name.startswith(_LINKS) for name in inputs) else b""


def resolve_request(
    request: CounterRequest,
    planner: _core.MetricPlanner,
    chip: str,
    *,
    sampling: bool,
    chips_with: Callable[[str], list[str]] | None = None,
) -> tuple[list[Metric], dict[str, str]]:
    """The metrics that a request names, each once, and the names of presets, sets and sections that the chip lacks, with why.

    Args:
        planner: says which perfworks names the chip has.
        sampling: for strategy "sample", which has fewer.
        chips_with: the chips that have a metric, for the error about one that this chip lacks.

    Raises:
        MetricError: a name that the user wrote, and that there is not.
    """
    found: dict[str, Metric] = {}
    dropped: dict[str, str] = {}
    describe = planner.properties
    if request.metrics:
        selection = select(request.metrics, chip, describe=describe, chips_with=chips_with)
        found.update((m.name, m) for m in selection.metrics)
        dropped.update(selection.dropped)
    if request.events:
        found.update((m.name, m) for m in resolve_events(request.events, chip, describe=describe))
    chosen = [resolve_set(request.set, chip, describe=describe, sampling=sampling)] if request.set else []
    chosen += [resolve_section(s, chip, describe=describe, sampling=sampling) for s in request.section]
    for selection in chosen:
        found.update((m.name, m) for m in selection.metrics)
        dropped.update(selection.dropped)
    return list(found.values()), dropped


def _too_many_passes(
    strategy: str,
    groups: Sequence[_core.PassGroup],
    planner: _core.MetricPlanner,
    inputs: list[str],
    metrics: Sequence[Metric],
) -> MetricError:
    """An error that says which metrics fit into one pass together and which to drop."""
    needed = passes_of(groups)
    try:
        fits = set(max(planner.one_pass_groups(inputs), key=lambda g: len(g.metrics)).metrics)
    except MetricError:
        alone = [i for i in inputs if passes_of(planner.plan([i])) == 1]
        fits = set(max(planner.one_pass_groups(alone), key=lambda g: len(g.metrics)).metrics) if alone else set()
    drop = [m.name for m in metrics if not set(m.inputs) <= fits]
    hint = f"drop {', '.join(drop)}" if len(drop) < len(metrics) else "ask for fewer metrics"
    if strategy == "range":
        hint += ", or repeat the work: profile(..., repeatable=True) and prof.repeat(function)"
    return MetricError(f"these metrics need {needed} passes, and strategy {strategy!r} has one", hint=hint)
