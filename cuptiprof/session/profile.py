"""``cuptiprof.profile``: start, stop, pause, step, and the result."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

from cuptiprof import _core
from cuptiprof.counters.request import make_request
from cuptiprof.data.result import Result
from cuptiprof.device.devices import Device, open_device
from cuptiprof.device.nvtx_injection import inject_nvtx, nvtx_complaints, nvtx_names
from cuptiprof.errors import SessionError
from cuptiprof.regions.decorating import decorated
from cuptiprof.regions.hand_over import Following
from cuptiprof.session.arguments import check_arguments, publishers_of
from cuptiprof.session.assemble import assemble, run_metadata
from cuptiprof.session.beside_kineto import TorchProfilerWatch
from cuptiprof.session.callers import warn_caller
from cuptiprof.session.control import Control
from cuptiprof.session.following_torch import FollowingTorch, TakenTorch
from cuptiprof.session.held import Held
from cuptiprof.session.onlookers import Onlookers
from cuptiprof.session.pauses import Pauses
from cuptiprof.session.schedule import Action, Schedule
from cuptiprof.session.sources import SourcesArgument
from cuptiprof.session.step_line import StepLine
from cuptiprof.session.steps import Step, Steps
from cuptiprof.text.html import html_line

if TYPE_CHECKING:
    from cuptiprof.counters.live import LiveCounters
    from cuptiprof.filter.kernel_filter import KernelFilter
    from cuptiprof.io.spill import Spill
    from cuptiprof.publish.publisher import Publisher, Publishing
    from cuptiprof.report.views.key_averages import KeyAverages
    from cuptiprof.session.system_sampler import SystemSampler
    from cuptiprof.session.visible_readings import VisibleReadings
    from cuptiprof.watch.live_figures import LiveFigures

F = TypeVar("F", bound=Callable[..., Any])

_WORK = ("kernels", "memcpys", "memsets", "graph_launches", "regions")


@dataclass
class _Pending:
    """A cycle that ends: what its result needs, kept until the result is finished, however often that is interrupted."""

    cycle: int
    steps: Steps
    torch: TakenTorch
    stop_ns: int = 0
    made: tuple[Result, list[Warning]] | None = None


class profile:
    """Collects GPU activity while it is open: a context manager, a decorator, or ``start()`` and ``stop()``.

    Args:
        device: "cuda", "sim" or "sim:CHIP" (a simulated GPU), "replay:FILE" (a recorded torch.profiler trace on it).
            Default: the environment variable CUPTIPROF_DEVICE, else "cuda". A ``cuptiprof.device.devices.Device`` is taken as it is.
        activities: what to collect (see ``cuptiprof.data.activities.KINDS``); default: kernels, copies, sets, API calls,
            synchronisations. "allocator": the history of PyTorch's caching allocator (``docs/memory.md``); "collectives":
            calls of torch.distributed (``docs/collectives.md``).
        kernels: keep only kernels that match: a pattern (glob, or "regex:..."), a list of them, or a ``KernelFilter``.
        regions: keep only kernels launched in regions that match.
        metrics: hardware counters to read of the selected kernels: nvprof's names ("achieved_occupancy", "ipc",
            "dram_read_throughput"), perfworks names, presets ("memory", "roofline", ...); ``cuptiprof metrics`` lists
            them. The values are in ``metric_ranges`` and ``metrics``; see ``docs/counters.md``.
        events: nvprof's event names.
        set, section: Nsight Compute's sets ("basic") and sections ("SpeedOfLight").
        strategy: how to count: "replay" (each kernel once per pass), "iterate" (one pass group per step, or per
            occurrence of a kernel), "range" (regions as a whole), "sample" (the device over time), "auto".
        sampling_interval: of "sample": ns, or text ("100us").
        repeatable: strategy "range": the work is given to ``repeat()``, so that it may need several passes.
        region_levels: strategy "range": how many levels of nested regions are measured; more than 1 needs repeatable.
        cache_control, clock_control: ncu's: "all" resets the caches before each pass, "base" or "boost" holds the clocks of
            the GPU (for everybody on it) until stop(); "none". From CUDA 13.4 on; default: ncu's ("all", "base") for
            "replay" where the library can, "none" for the others.
        communicating: count kernels that wait for other GPUs too (NCCL, NVSHMEM); replayed, they can hang.
        explain: print the plan (metrics, expressions, passes, strategy, cost) to stderr before starting.
        launch_skip, launch_count: of the matching launches, skip so many, then keep at most so many.
        keep: when the budget is used up, "latest" drops the oldest rows, "first" drops new ones, "spill" writes to disk.
        budget: bytes for everything the session holds in memory, int or text ("256 MB").
        spill_dir: where "spill" writes; default: a temporary folder. It goes when the result is made;
            of a process that was killed, ``cuptiprof.open`` reads it.
        buffer_size, buffer_count: of the buffers given to CUPTI; default 256 KiB, an eighth of the budget.
        device_buffer_size, device_buffers: of CUPTI's own buffers in GPU memory (bytes each; how many a context may have);
            used up, kernels have no times. Default: CUPTI's (3.2 MB, 250). Set before CUDA starts, put back at stop.
        all_api_calls: record also the calls that only ask and come by the thousand: cudaGetDevice, cudaEventQuery,
            cuEventQuery, cuCtxGetCurrent, cuDevicePrimaryCtxGetState, cuKernelGetAttribute (left out from CUDA 12.5 on).
        latency_timestamps: fill ``kernels.queued`` and ``submitted``; costs time on every launch. To be set before CUDA starts.
        profile_from_start: False: collect only between cudaProfilerStart and cudaProfilerStop.
        share_cupti: let other tools collect at the same time, where CUPTI (CUDA 13.3) and the driver (r610) can and they do
            too (JAX, cupti-python): not torch.profiler. CUPTI that others share already is joined without it. Not with
            counters nor the activity "graph".
        system: read the system beside the kernels in a thread of ours, every 100 ms or at an interval ("50ms"): power, clocks, temperature,
            memory, utilisation, PCIe, NVLink, errors of the GPUs by NVML, CPU, memory and I/O of the process. See ``docs/system.md``.
        sources: where else, beside regions and steps, launches get their names from: "nvtx" (NVTX ranges), "lines" (the line of
            the program), "stacks" (the whole Python stack), "modules" and "operators" (PyTorch's), a list of them, "all", or a
            mapping to levels: {"nvtx": "launch"} knows what is open at launches only, "full" has host times too. {"lines":
            {"packages": ["torch"]}}: lines of these installed packages count as the program's own. See ``docs/regions.md``,
            ``docs/python-lines.md``, ``docs/pytorch.md`` and ``docs/pytorch-modules.md``.
        schedule: which steps to collect (``cuptiprof.schedule``); call ``step()`` after each.
        on_ready: called with the session after the last active step of each cycle, and after ``stop()`` without a
            schedule.
        live: ``cuptiprof top`` can show, from another terminal, what the session collects while it runs. See ``docs/live.md``.
        on_live: called once a second while the session runs, and once more at its end, with the numbers so far
            (:class:`~cuptiprof.watch.live_figures.LiveFigures`), from a thread of ours.
        publish: give what the session collects to monitoring while it runs: ``cuptiprof.publish.prometheus.Prometheus(port=9464)``,
            ``cuptiprof.publish.open_telemetry.OpenTelemetry()``, or several. See ``docs/monitoring.md``.
        progress: with a schedule, say on standard error which step runs; default: where that is a terminal.
        speed: replay only: 1 plays at the recorded pace, 0 as fast as possible.

    Raises (on start):
        DeviceError: no such device; CuptiError: CUPTI refused; SessionError: another session runs; BudgetError: too small;
        FilterError: a bad pattern; MetricError: unknown metrics, or ones the strategy cannot collect. Nothing is left switched on.
    """

    _ages_texts = False  # the recorder's: for sessions without end
    _follows_launches = True  # without: no regions, no launch count; benchmarks measure what that saves

    def __init__(
        self,
        *,
        device: str | Device | None = None,
        activities: Iterable[str] | None = None,
        kernels: str | Iterable[str] | KernelFilter | None = None,
        regions: str | Iterable[str] | None = None,
        metrics: str | Iterable[str] | None = None,
        events: str | Iterable[str] | None = None,
        set: str | None = None,
        section: str | Iterable[str] | None = None,
        strategy: str = "auto",
        sampling_interval: int | float | str = 100_000,
        repeatable: bool = False,
        region_levels: int = 1,
        communicating: bool = False,
        cache_control: str | None = None,
        clock_control: str | None = None,
        explain: bool = False,
        launch_skip: int = 0,
        launch_count: int | None = None,
        keep: str = "latest",
        budget: int | str = "256 MB",
        spill_dir: str | os.PathLike[str] | None = None,
        buffer_size: int | str | None = None,
        buffer_count: int | None = None,
        device_buffer_size: int | str | None = None,
        device_buffers: int | None = None,
        all_api_calls: bool = False,
        latency_timestamps: bool = False,
        profile_from_start: bool = True,
        share_cupti: bool = False,
        system: bool | int | float | str = False,
        sources: SourcesArgument = None,
        schedule: Schedule | None = None,
        on_ready: Callable[[profile], object] | None = None,
        live: bool = False,
        on_live: Callable[[LiveFigures], object] | None = None,
        publish: Publisher | Iterable[Publisher] | None = None,
        progress: bool | None = None,
        speed: float = 0.0,
    ) -> None:
        self._arguments = check_arguments(
            device=device.spec if isinstance(device, Device) else device,
            activities=activities,
            kernels=kernels,
            regions=regions,
            launch_skip=launch_skip,
            launch_count=launch_count,
            keep=keep,
            budget=budget,
            buffer_size=buffer_size,
            buffer_count=buffer_count,
            device_buffer_size=device_buffer_size,
            device_buffers=device_buffers,
            all_api_calls=all_api_calls,
            latency_timestamps=latency_timestamps,
            profile_from_start=profile_from_start,
            share_cupti=share_cupti,
            system=system,
            sources=sources,
        )
        self._counter_request = make_request(
            metrics=metrics,
            events=events,
            set=set,
            section=section,
            strategy=strategy,
            sampling_interval=sampling_interval,
            repeatable=repeatable,
            region_levels=region_levels,
            communicating=communicating,
            cache_control=cache_control,
            clock_control=clock_control,
        )
        self._explain = explain
        self._counters: LiveCounters | None = None
        self._device_spec = device
        self._spill_dir = os.path.abspath(spill_dir) if spill_dir is not None else None  # the program may chdir
        self._schedule = schedule
        self._on_ready = on_ready
        self._onlookers = Onlookers(live, on_live, tuple(publishers_of(publish)))
        self._publishing: Publishing | None = None
        self._progress = progress
        self._line: StepLine | None = None
        self._speed = speed
        self._control = Control()
        self._session: Any = None
        self._device: Device | None = None
        self._on_device = False
        self._opened = Held()  # what the session holds of its device, and of the program
        self._torch = FollowingTorch(self._arguments)
        self._system: SystemSampler | None = None
        self._system_now: VisibleReadings | None = None
        self._spill: Spill | None = None
        self._result: Result | None = None
        self._pending: _Pending | None = None
        self._cycle = 0
        self._steps = self._no_steps()
        self._step = 0
        self._step_start = 0
        self._start_ns = 0
        self._pauses = Pauses()

    def __del__(self) -> None:
        """Dropped, not stopped: what it put into the program goes; the native session stops itself."""
        if not sys.is_finalizing() and hasattr(self, "_opened"):
            try:
                if self._spill is not None:
                    self._spill.leave_off()  # its thread, when it writes, keeps the native session
                self._leave_device()
            finally:
                self._opened.close()

    def __repr__(self) -> str:
        return f"<cuptiprof.profile: {self.state}>"

    def _repr_html_(self) -> str:
        return html_line(repr(self)) + (self._result._repr_html_() if self._result is not None else "")

    @property
    def state(self) -> str:
        """idle, armed, running, paused or stopped."""
        return str(self._session.state) if self._session is not None else "idle"

    def start(self) -> profile:
        """Begin; a stopped session can begin again. See the class for errors."""
        with self._control.call("start()"):
            if self._session is not None and self._session.state != "stopped":
                raise SessionError(f"start() while the session is {self._session.state}")
            self._control.begin()
            self._result = self._pending = self._session = self._spill = None
            self._steps = self._no_steps()
            self._step = self._cycle = 0
            self._pauses = Pauses()
            self._line = StepLine(self._progress) if self._schedule is not None else None
            self._device = device = open_device(self._device_spec, speed=self._speed)
            self._opened = Held()
            try:
                self._opened.enter(device.open())
                self._counters = self._plan_counters(device)
                if self._arguments.sources.nvtx:
                    inject_nvtx()
                self._read_system(device)
                self._session = session = self._arguments.native_session(
                    device,
                    self._counters,
                    follows_launches=self._follows_launches,
                    ages_texts=self._ages_texts,
                    live=self._onlookers.any,
                    environment=self._system is not None and not self._system.has_gpus,
                )
                self._start_ns = _core.now_ns()
                if self._arguments.keep == "spill":
                    from cuptiprof.io.spill import Spill

                    self._spill = Spill(session, self._spill_dir, self._spill_header())
                self._opened.enter(Following())
                self._torch = FollowingTorch(self._arguments)
                self._torch.before_start(self._opened)
                session.start(armed=self._schedule is not None and self._schedule(0) is Action.NONE)
                if self._spill is not None:
                    self._spill.start()
                self._start_ns = self._step_start = _core.now_ns()
                if not device.simulated:
                    self._opened.enter(TorchProfilerWatch())
                self._on_device = True
                device.started()
                self._torch.after_start(self._opened)
                budget = self._arguments.budget
                self._onlookers.show(session, device, budget, self._opened)
                if self._system is not None:
                    self._opened.enter(self._system)
                self._publishing = self._onlookers.publish(session, device, budget, self._system_now, self._opened)
                self._torch.record(session.state == "running")
            except BaseException:
                self._abandon()
                raise
            return self

    def _abandon(self) -> None:
        """The start failed: nothing stays on."""
        try:
            if self._session is not None and self._session.state != "idle":
                self._session.stop()
            if self._spill is not None:
                self._spill.end()
            self._leave_device()
        finally:
            self._session = self._spill = None
            self._opened.close()
            self._control.end()

    def _read_system(self, device: Device) -> None:
        """Begins when it is entered."""
        self._system = self._system_now = None
        interval = self._arguments.system_interval
        if not interval:
            return
        from cuptiprof.session.system_sampler import SystemSampler
        from cuptiprof.session.visible_readings import VisibleReadings

        self._system = SystemSampler(device.nvml, interval, self._arguments.budget, simulated=device.simulated)
        self._system_now = VisibleReadings(self._system, device)

    def _leave_device(self) -> None:
        """The device is told that the session stops, once."""
        if self._on_device and self._device is not None:
            self._device.stopping()
            self._on_device = False

    def stop(self) -> Result:
        """End, wait for what the GPU still has to do, and return the result.

        Interrupted (Ctrl-C), it can be called again, or ``result()``: nothing is lost.

        Raises:
            SessionError: not started, or called in the middle of another call (from a signal handler).
        """
        with self._control.call("stop()"):
            self._erase_line()
            if not self._is_unfinished():
                session = self._running("stop()")
                of_torch = self._torch.take_on_device()
                self._leave_device()
                steps = self._steps.plus(self._recorded(self._last_step()))
                self._pending = _Pending(self._cycle + 1, steps, of_torch)
                session.stop()
            action = self._schedule(self._step) if self._schedule is not None else None
            if self._result is not None and (action in (Action.NONE, Action.WARMUP) or self._is_nothing_left()):
                self._drop_rest()
            else:
                self._finish()
                self._tell_user(unless=(Action.NONE, Action.WARMUP), action=action)
            assert self._result is not None
            return self._result

    def _is_nothing_left(self) -> bool:
        """The last cycle ended with the last step, and no work came after it: that cycle is the result, not what follows it."""
        if self._schedule is None or self._schedule(self._step - 1) is not Action.RECORD_AND_SAVE:
            return False
        if self._spill is not None and self._spill.read():
            return False
        tables = self._session.taken().tables()
        return not any(len(column) for name in _WORK for column in tables[name].values())

    def _is_unfinished(self) -> bool:
        """A cycle ended and its result is not made: an interruption came between."""
        return self._pending is not None and self._session is not None and self._session.taken() is not None

    def _finish(self) -> None:
        """The result of what the native session handed over. What it changes, it changes in an order that can be repeated."""
        pending = self._pending
        assert pending is not None
        if pending.stop_ns == 0:
            pending.stop_ns = _core.now_ns()
            self._session.add_clock_pair()
        self._torch.take_rest(pending.torch)
        if pending.made is None:
            run = {**self._run(), **self._pauses.metadata(pending.stop_ns), "stop_time_ns": pending.stop_ns}
            steps = pending.steps if self._schedule is not None or self._step else None
            pending.made = assemble(
                self._session,
                self._session.taken(),
                run,
                steps,
                self._arguments.filter,
                self._counters,
                self._spill,
                pending.torch,
                self._system.rows(pending.stop_ns) if self._system is not None else None,
            )
        self._result, warned = pending.made
        if self._counters is not None:
            self._counters.kept()
        self._drop_rest()
        for warning in warned:
            warn_caller(warning)

    def _drop_rest(self) -> None:
        """Go on to the next cycle; after the last one, let go of what only a session needs."""
        pending = self._pending
        assert pending is not None
        if self._spill is not None:
            self._spill.next_cycle(pending.cycle)
        if self._system is not None:
            self._system.forget(pending.stop_ns)
        self._cycle = pending.cycle
        self._pauses.next_cycle()
        self._steps = self._no_steps()
        if self._session.state == "stopped":
            if self._spill is not None:
                self._spill.end()
            self._opened.close()
            self._control.end()
        self._pending = None
        self._session.forget_taken()

    def _tell_user(self, *, unless: tuple[Action, ...] = (), action: Action | None = None) -> None:
        """``on_ready``, unless this step's action is one of those."""
        if self._on_ready is not None and action not in unless:
            self._erase_line()
            with self._control.for_user():
                self._on_ready(self)

    def _erase_line(self) -> None:
        if self._line is not None:
            self._line.erase()

    def detach(self, *, finalize: bool = False) -> Result:
        """``stop()``, unless stopped already; ``finalize=True`` then takes CUPTI itself out of the process.

        A stopped session has nothing switched on, but CUPTI stays in the process, and with some versions and programs
        launches stay slower for it. ``cuptiFinalize`` removes it; the next session attaches it again. It is not the ordinary
        way to stop: it is slow, and has crashed programs. Other threads may launch meanwhile, but not use CUPTI.

        Returns:
            What ``stop()`` returned; ``result()`` returns it too.

        Raises:
            SessionError: not started, or finalize while another session runs. CuptiError: another tool holds CUPTI, or
            ``cuptiFinalize`` failed; the session is stopped and CUPTI is still there.
        """
        if self._session is None:
            raise SessionError("detach() without start()", hint="call start(), or use `with cuptiprof.profile(...):`")
        result = self.stop() if self._session.state != "stopped" else self.result()
        if finalize:
            with self._control.call("detach()"):
                self._session.finalize()
        return result

    def pause(self, *, wait: bool = True) -> None:
        """Stop collecting; ``resume()`` goes on. The result knows when nothing was observed (``metadata["unobserved_ns"]``).

        Args:
            wait: for the GPU, so that what was launched before is kept. Else what it has not finished may be missing, or come after
                ``resume()``; for whoever must not wait.

        Raises:
            SessionError: not running.
        """
        with self._control.call("pause()"):
            self._running("pause()").pause(wait)
            self._pauses.begin()
            self._torch.record(False)

    def resume(self) -> None:
        """Collect again after ``pause()``.

        Raises:
            SessionError: not paused.
        """
        with self._control.call("resume()"):
            self._running("resume()").resume()
            self._pauses.end()
            self._torch.record(True)

    def step(self) -> None:
        """The end of a training step: marks it (``ProfilerStep#N`` in ``markers``) and moves the schedule on.

        Raises:
            SessionError: not started.
        """
        with self._control.call("step()"):
            session = self._running("step()")
            if self._is_unfinished():
                self._finish()
            last = self._last_step()
            if self._publishing is not None:
                self._publishing.readings.steps.add(_core.now_ns() - self._step_start)
            self._steps.extend(self._recorded(last))
            self._step_start = _core.now_ns()
            self._torch.step()
            session.step(self._step + 1)
            if self._schedule is None:
                self._step += 1
                return
            was = self._schedule(self._step)
            self._step += 1
            will = self._schedule(self._step)
            recording = (Action.RECORD, Action.RECORD_AND_SAVE)
            if was is Action.RECORD_AND_SAVE:
                if session.state != "paused":  # by the user
                    session.pause()
                self._pending = _Pending(self._cycle + 1, self._steps, self._torch.take_on_device())
                session.take()
                self._finish()
                self._tell_user()
                if session.state == "stopped":
                    return
            elif was is Action.WARMUP and will in recording:
                if session.state != "paused":
                    session.pause()
                session.discard()
                if self._spill is not None:
                    self._spill.discard()
            if will in recording and was is not Action.RECORD:
                self._torch.forget()
                if self._system is not None:
                    self._system.forget(_core.now_ns())
            if session.state == "running" and will is Action.NONE:
                session.pause()
            elif session.state != "running" and will is not Action.NONE:
                session.resume()
                self._pauses.end()
            self._torch.record(session.state == "running")
            if self._line is not None:
                self._line.show(self._step, will, last[0].end - last[0].start if last else 0, self._cycle)
            self._step_start = _core.now_ns()

    def counts(self) -> dict[str, int]:
        """So far, since the start: ``launches``, ``lost`` (rows and records, of all kinds), ``live_bytes`` (held in memory),
        ``decoder_ns`` (CPU time of the thread that makes rows of records).

        Raises:
            SessionError: not started.
        """
        if self._session is None:
            raise SessionError("counts() without start()", hint="call start(), or use `with cuptiprof.profile(...):`")
        native = self._session.counts()
        lost = sum(n for name, n in self._session.losses() if name not in ("budget_evicted", "filter_rejected"))
        return {
            "launches": native["launches"],
            "lost": lost,
            "live_bytes": native["live_bytes"],
            "decoder_ns": native["decoder_ns"],
        }

    def snapshot(self) -> Result:
        """What was collected so far, as a result of its own; the session goes on without a pause, and waits for nothing.

        What the GPU has not finished is not in it, nor what CUPTI still holds; regions that are open end now. The history of PyTorch's
        allocator and collectives are told at the end of a session only. It takes as much memory again as the session holds.

        Raises:
            SessionError: not running, keep="spill", or counters are read. BudgetError: no memory for it.
        """
        with self._control.call("snapshot()"):
            session = self._running("snapshot()")
            if self._spill is not None:
                raise SessionError('snapshot() with keep="spill"', hint='keep="latest" keeps what a snapshot copies')
            store = session.snapshot()
            steps = (
                self._steps.plus(self._recorded(self._last_step()))
                if self._schedule is not None or self._step
                else None
            )
            session.add_clock_pair()
            now = _core.now_ns()
            run = {**self._run(), **self._pauses.metadata(now), "stop_time_ns": now}
            of_torch = self._torch.so_far()
            system = self._system.rows(now) if self._system is not None else None
        result, _ = assemble(session, store, run, steps, self._arguments.filter, None, None, of_torch, system)
        return result

    def system_now(self) -> list[tuple[int, str, float]]:
        """The latest readings of the system (``system=``): GPU as the program numbers it (-1: the host), name of the counter, value in
        its unit; none yet: empty. Those of GPUs begin when the program has used one. What was read longest ago is left out.

        Raises:
            SessionError: not started.
        """
        self._running("system_now()")
        return self._system_now() if self._system_now is not None else []

    def repeat(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Run ``function(*args, **kwargs)`` once per pass, so that regions have counters that need several; strategy "range".

        The function must enter the same regions and do the same work each time. Returns what the last call returned.

        Raises:
            SessionError: not running, without counters, or without repeatable=True; what the function raises.
        """
        session = self._running("repeat()")
        if self._counters is None or not self._counter_request.repeatable:
            raise SessionError(
                "repeat() without repeatable work", hint='profile(metrics=..., strategy="range", repeatable=True)'
            )
        while True:
            try:
                result = function(*args, **kwargs)
            except BaseException:
                if session.state != "stopped":
                    session.abandon_passes()
                raise
            if not session.next_pass():
                return result

    def result(self) -> Result:
        """What was collected: after ``stop()``, or of the last finished cycle of the schedule.

        Raises:
            SessionError: nothing is finished yet.
        """
        if self._is_unfinished():
            with self._control.call("result()"):
                if self._is_unfinished():
                    self._finish()
        if self._result is None:
            raise SessionError("there is no result yet", hint="call stop(), or leave the with block, first")
        return self._result

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """``result().save(path)``."""
        self.result().save(path, overwrite=overwrite)

    def export(self, path: str | os.PathLike[str], *, format: str | None = None, overwrite: bool = False) -> None:
        """``result().export(path)``."""
        self.result().export(path, format=format, overwrite=overwrite)

    def key_averages(self, group_by_input_shape: bool = False, group_by_stack_n: int = 0) -> KeyAverages:
        """``result().key_averages(...)``, by torch.profiler's name."""
        return self.result().key_averages(group_by_input_shape, group_by_stack_n)

    def export_chrome_trace(self, path: str | os.PathLike[str]) -> None:
        """``result().export_chrome_trace(path)``, by torch.profiler's name."""
        self.result().export_chrome_trace(path)

    def __enter__(self) -> profile:
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        if self._control.is_inherited:
            return  # a forked child leaves the block; the session is its parent's
        if self._session is None or self._session.state == "stopped":
            return
        try:
            self.stop()
        except BaseException:  # Ctrl-C before the session was stopped: it must not go on without anybody to stop it
            if self._session.state != "stopped":
                self.stop()
            raise

    def __call__(self, function: F) -> F:
        """As a decorator: each call of `function`, which may be async, is one session."""
        return decorated(function, lambda: self, "a session")

    def _running(self, call: str) -> Any:
        """The native session; SessionError in the name of `call`: none is started."""
        if self._session is None or self._session.state in ("idle", "stopped"):
            raise SessionError(f"{call} without start()", hint="call start(), or use `with cuptiprof.profile(...):`")
        return self._session

    def _no_steps(self) -> Steps:
        return Steps(self._arguments.budget, keep_first=self._arguments.keep == "first")

    def _last_step(self) -> list[Step]:
        """The step that ends now; none where steps are not counted and nothing runs."""
        if self._schedule is None and self._step == 0 and not self._steps and self._session.state != "running":
            return []
        return [Step(self._step, self._step_start, _core.now_ns(), threading.get_native_id())]

    def _recorded(self, steps: list[Step]) -> list[Step]:
        """Without those that wait or warm up: nothing of them is in the result."""
        if self._schedule is None:
            return steps
        return [step for step in steps if self._schedule(step.number) in (Action.RECORD, Action.RECORD_AND_SAVE)]

    def _run(self) -> dict[str, Any]:
        """Metadata that only the session knows."""
        assert self._device is not None
        of_nvtx = self._arguments.sources.nvtx
        notes = [*(nvtx_complaints() if of_nvtx else ()), *([self._torch.note] if self._torch.note else ())]
        names = nvtx_names() if of_nvtx else {}
        return {
            **self._device.metadata(),
            **({"note": "; ".join(notes)} if notes else {}),
            **({"nvtx_names": names} if names else {}),
            "start_time_ns": self._start_ns,
            "clock_pairs": self._session.clock_pairs(),
            "arguments": dict(self._arguments.recorded),
        }

    def _spill_header(self) -> dict[str, Any]:
        """For whoever opens the folder when this process was killed."""
        notes = []
        if self._arguments.filter is not None and self._arguments.filter.is_applied_late:
            notes.append(f"{self._arguments.filter.describe()} was not applied: that is done when the session stops")
        if self._counters is not None:
            notes.append("hardware counters were in memory only")
        return {"metadata": run_metadata(self._run()), "notes": notes}

    def _plan_counters(self, device: Device) -> LiveCounters | None:
        if not self._counter_request:
            return None
        from cuptiprof.counters.live import LiveCounters

        return LiveCounters(
            self._counter_request,
            device,
            self._arguments.filter,
            stepped=self._schedule is not None,
            explain=self._explain,
        )
