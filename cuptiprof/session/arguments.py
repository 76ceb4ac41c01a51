"""What ``profile(...)`` was asked for, checked, and the native session made of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from cuptiprof import _core
from cuptiprof.data.activities import ALLOCATOR, COLLECTIVES, ENVIRONMENT, kinds_of
from cuptiprof.device.devices import Device
from cuptiprof.errors import BudgetError, SessionError
from cuptiprof.session.callers import who_started
from cuptiprof.session.memory_limit import memory_limit
from cuptiprof.session.python_frames import frame_origins
from cuptiprof.session.sources import Sources, SourcesArgument, parse_sources
from cuptiprof.text.sizes import parse_bytes
from cuptiprof.text.time_lengths import read_time

if TYPE_CHECKING:
    from cuptiprof.counters.live import LiveCounters
    from cuptiprof.filter.kernel_filter import KernelFilter
    from cuptiprof.publish.publisher import Publisher

KEEP = ("latest", "first", "spill")


@dataclass(frozen=True)
class Arguments:
    """What ``profile`` was asked for, checked and read; see there.

    Attributes:
        recorded: what run.json says of them.
        kinds: CUpti_ActivityKind of what is collected.
        allocator, collectives: the history of PyTorch's caching allocator, calls of torch.distributed, too.
        filter: of kernels= and regions= and how many of those; None: all.
        system_interval: ns between two readings of the system; 0: none are made.
        budget, buffer_size, device_buffer_size: bytes; 0: the default, as with both numbers of buffers.
        names_operators: of sources the operators are wanted for themselves, not only for collectives, of which backends tell beside them.
    """

    recorded: Mapping[str, Any]
    kinds: list[int]
    allocator: bool
    collectives: bool
    filter: KernelFilter | None
    keep: str
    budget: int
    buffer_size: int
    buffer_count: int
    device_buffer_size: int
    device_buffers: int
    all_api_calls: bool
    latency_timestamps: bool
    profile_from_start: bool
    share_cupti: bool
    system_interval: int
    sources: Sources
    names_operators: bool

    def native_session(
        self,
        device: Device,
        counters: LiveCounters | None,
        *,
        follows_launches: bool,
        live: bool,
        environment: bool,
        ages_texts: bool,
    ) -> _core.Session:
        """The native session, not started.

        Args:
            follows_launches: by callbacks; without them there are no regions and no count of launches.
            live: sums are made while it runs.
            ages_texts: names that no row has any more go, where they need the room.
            environment: CUPTI is asked for what NVML does not read.

        Raises:
            BudgetError: the budget is too small for the buffers. SessionError: Python's lines are asked for and cannot be read.
        """
        whole_run = self.filter is not None and self.filter.is_applied_late
        sources = self.sources
        if self.filter is not None and self.filter.needs_lines:
            sources = replace(sources, frames=2)
        return _core.Session(
            api=device.library,
            kinds=[*self.kinds, ENVIRONMENT] if environment else self.kinds,
            keep=self.keep,
            budget=self.budget,
            buffer_size=self.buffer_size,
            buffer_count=self.buffer_count,
            device_buffer_size=self.device_buffer_size,
            device_buffers=self.device_buffers,
            all_api_calls=self.all_api_calls or device.plays_every_call,
            latency_timestamps=self.latency_timestamps,
            profiler_calls=not self.profile_from_start,
            share_cupti=self.share_cupti,
            label=who_started(),
            filter=self.filter.native if self.filter is not None and not whole_run else None,
            counters=counters.plan.options(self.filter) if counters is not None else None,
            follows_launches=follows_launches,
            nvtx=sources.nvtx,
            frames=sources.frames,
            frame_origins=frame_origins(sources),
            modules=sources.modules,
            operators=sources.operators,
            operator_shapes=sources.shapes,
            live=live,
            ages_texts=ages_texts,
        )


def check_arguments(
    *,
    device: str | Device | None,
    activities: Iterable[str] | None,
    kernels: str | Iterable[str] | KernelFilter | None,
    regions: str | Iterable[str] | None,
    launch_skip: int,
    launch_count: int | None,
    keep: str,
    budget: int | str,
    buffer_size: int | str | None,
    buffer_count: int | None,
    device_buffer_size: int | str | None,
    device_buffers: int | None,
    all_api_calls: bool,
    latency_timestamps: bool,
    profile_from_start: bool,
    share_cupti: bool,
    system: bool | int | float | str,
    sources: SourcesArgument,
) -> Arguments:
    """The arguments of ``profile`` that do not concern counters or the schedule, checked.

    Raises:
        BudgetError: unknown keep, or sizes that cannot be read. SessionError: a bad interval of the system. FilterError: a bad pattern. CuptiprofError: an unknown activity.
    """
    if keep not in KEEP:
        raise BudgetError(f"unknown keep={keep!r}", hint=f"one of: {', '.join(KEEP)}")
    recorded: dict[str, Any] = {
        "device": device.spec if isinstance(device, Device) else device,
        "activities": list(activities) if activities is not None else None,
        "kernels": str(kernels) if kernels is not None else None,
        "regions": str(regions) if regions is not None else None,
        "keep": keep,
        "budget": budget,
        "latency_timestamps": latency_timestamps,
        "profile_from_start": profile_from_start,
        "system": system,
        "sources": dict(sources)
        if isinstance(sources, Mapping)
        else sources
        if isinstance(sources, str)
        else list(sources or []),
    }
    kinds = kinds_of(recorded["activities"])
    collectives = COLLECTIVES in (recorded["activities"] or ())
    kernel_filter = _make_filter(kernels, regions, launch_skip, launch_count)
    named = _with_those_of(kernel_filter, parse_sources(sources))
    try:
        budget_bytes = parse_bytes(budget, "budget")
        buffer_bytes = parse_bytes(buffer_size, "buffer_size") if buffer_size is not None else 0
        device_bytes = parse_bytes(device_buffer_size, "device_buffer_size") if device_buffer_size is not None else 0
    except ValueError as e:
        raise BudgetError(str(e)) from None
    if budget_bytes > memory_limit():
        raise BudgetError(
            f"budget={budget!r} is more than the {memory_limit() / 1e9:.3g} GB of memory that there are",
            hint='give less, or keep="spill", which writes to disk what does not fit',
        )
    if buffer_count is not None and (not isinstance(buffer_count, int) or not 0 <= buffer_count < 2**32):
        raise BudgetError(
            f"buffer_count={buffer_count!r} is not a number of buffers", hint="leave it out, or 4 to 1024"
        )
    return Arguments(
        recorded=recorded,
        kinds=kinds,
        allocator=ALLOCATOR in (recorded["activities"] or ()),
        collectives=collectives,
        filter=kernel_filter,
        keep=keep,
        budget=budget_bytes,
        buffer_size=buffer_bytes,
        buffer_count=buffer_count or 0,
        device_buffer_size=device_bytes,
        device_buffers=device_buffers or 0,
        all_api_calls=all_api_calls,
        latency_timestamps=latency_timestamps,
        profile_from_start=profile_from_start,
        share_cupti=share_cupti,
        system_interval=_system_interval(system),
        sources=replace(named, operators=named.operators or _CHEAP.operators) if collectives else named,
        names_operators=named.operators != 0,
    )


def publishers_of(publish: Publisher | Iterable[Publisher] | None) -> tuple[Publisher, ...]:
    """``publish=``; SessionError: something else than publishers."""
    if publish is None:
        return ()
    from cuptiprof.publish.publisher import Publisher

    found = (publish,) if isinstance(publish, Publisher) else tuple(publish) if isinstance(publish, Iterable) else ()
    if not found or not all(isinstance(publisher, Publisher) for publisher in found):
        raise SessionError(
            f"publish={publish!r} is no publisher",
            hint="Prometheus(port=9464) of cuptiprof.publish.prometheus, OpenTelemetry() of cuptiprof.publish.open_telemetry, or a list of them",
        )
    return found


def _system_interval(system: bool | int | float | str) -> int:
    """ns; SessionError: no interval, or one that NVML could not keep."""
    if isinstance(system, bool):
        return 100_000_000 if system else 0
    interval = read_time(system) if isinstance(system, str) else system
    if interval is None or not _SHORTEST_NS <= interval <= _LONGEST_NS:
        raise SessionError(
            f"system={system!r} is no interval that it can be read at",
            hint='True (every 100 ms), or an interval from 10 ms to 10 s: "50ms"',
        )
    return int(interval)


_SHORTEST_NS, _LONGEST_NS = 10_000_000, 10_000_000_000


def _with_those_of(kernel_filter: KernelFilter | None, sources: Sources) -> Sources:
    """A session must know what its filter names (NVTX ranges, operators: the cheap way will do; modules), and operators where modules
    are asked for: backward knows by them whose it is."""
    if kernel_filter is not None:
        sources = _with_what_is_named(kernel_filter, sources)
    return replace(sources, operators=sources.operators or _CHEAP.operators) if sources.modules else sources


_CHEAP = parse_sources({"nvtx": "launch", "operators": "launch"})


def _with_what_is_named(kernel_filter: KernelFilter, sources: Sources) -> Sources:
    if kernel_filter.names_nvtx and not sources.nvtx:
        sources = replace(sources, nvtx=_CHEAP.nvtx)
    if kernel_filter.needs_operators and not sources.operators:
        sources = replace(sources, operators=_CHEAP.operators)
    return replace(sources, modules=sources.modules or kernel_filter.needs_modules)


def _make_filter(
    kernels: str | Iterable[str] | KernelFilter | None,
    regions: str | Iterable[str] | None,
    skip: int,
    count: int | None,
) -> KernelFilter | None:
    if kernels is None and regions is None and not skip and count is None:
        return None
    from cuptiprof.filter.kernel_filter import KernelFilter

    if isinstance(kernels, KernelFilter):
        return kernels
    return KernelFilter(kernels, regions=regions, skip=skip, count=count)
