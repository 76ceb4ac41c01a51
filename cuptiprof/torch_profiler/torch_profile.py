"""``torch.profiler.profile`` over a session."""

from __future__ import annotations

import json
import os
import re
import uuid
import warnings
from collections.abc import Callable, Iterable
from typing import Any

from cuptiprof.data.activities import ALLOCATOR, DEFAULT
from cuptiprof.data.result import Result
from cuptiprof.errors import SessionError
from cuptiprof.export.memory_timeline import export_memory_timeline
from cuptiprof.report.views.key_averages import KeyAverages
from cuptiprof.session.callers import warn_caller
from cuptiprof.session.profile import profile
from cuptiprof.session.schedule import Action, Schedule
from cuptiprof.session.torch_operators import OperatorsWarning
from cuptiprof.torch_profiler.function_events import function_events
from cuptiprof.torch_profiler.torch_activities import parse_groups
from cuptiprof.torch_profiler.torch_options import check_keywords, counters_of, sources_with

_RECORDING = (Action.RECORD, Action.RECORD_AND_SAVE)


class TorchProfile(profile):
    """``torch.profiler.profile``: its arguments and methods, and every keyword of ``cuptiprof.profile`` besides (``device``,
    ``metrics``, ``budget``, ...).

    Args:
        activities: ProfilerActivity.CPU: operators, annotations and their host times; CUDA: kernels, copies, sets, CUDA calls.
            Default: both. {ProfilerActivity.CUDA: ["GPU_MEMCPY"]}: only these.
        schedule: which steps to collect: a function of the step's number to an action, ours or torch's.
        on_trace_ready: called with this object after each cycle, or after stop() without a schedule.
        record_shapes: shapes and types of the inputs of operators.
        profile_memory: what torch's caching allocator gave and took back on the GPU.
        with_stack: the Python stack of operators and launches.
        with_flops: operations by torch's formulas; implies record_shapes.
        with_modules: the ``torch.nn.Module`` of operators and launches, backward included.
        experimental_config: of it the metrics are taken (``profiler_metrics``).
        execution_trace_observer: started and stopped with the recording.
        acc_events: ``key_averages`` and ``events`` are of all cycles until now, whose tables are kept for it; what is written is of the
            last one.
        custom_trace_id_callback: names each cycle; default: a random number.
        post_processing_timeout_s: of no effect, since there is nothing to wait for: tables are made of columns.
        use_cuda: torch's old name of ProfilerActivity.CUDA.
        options: of ``cuptiprof.profile``.

    Raises:
        SessionError: what torch.profiler has and this has not, with what to use instead. As ``cuptiprof.profile`` on start.
    """

    def __init__(
        self,
        *,
        activities: Iterable[Any] | None = None,
        schedule: Callable[[int], Any] | None = None,
        on_trace_ready: Callable[[Any], object] | None = None,
        record_shapes: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_flops: bool = False,
        with_modules: bool = False,
        experimental_config: Any = None,
        execution_trace_observer: Any = None,
        acc_events: bool = False,
        custom_trace_id_callback: Callable[[], str] | None = None,
        post_processing_timeout_s: float | None = None,
        use_cuda: bool | None = None,
        **options: Any,
    ) -> None:
        check_keywords(options, TorchProfile.__init__)
        if on_trace_ready is not None and options.get("on_ready") is not None:
            raise SessionError("on_trace_ready and on_ready are the same", hint="give one of them")
        groups = parse_groups(activities)
        if use_cuda is not None:
            warnings.warn("use_cuda is deprecated, use activities=", FutureWarning, stacklevel=2)
        self._given = {
            "record_shapes": record_shapes,
            "profile_memory": profile_memory,
            "with_stack": with_stack,
            "with_flops": with_flops,
            "with_modules": with_modules,
        }
        self._told = False
        self._adds_cycles = acc_events
        self._earlier: list[Result] = []
        self._user_metadata: dict[str, Any] = {}
        self._observer = execution_trace_observer
        self._name_cycle = custom_trace_id_callback or (lambda: uuid.uuid4().hex.upper())
        self._trace_id: str | None = None
        sources = sources_with(
            options.pop("sources", None),
            operators=groups.cpu,
            shapes=record_shapes or with_flops,
            stacks=with_stack,
            modules=with_modules,
        )
        if on_trace_ready is not None:
            options["on_ready"] = on_trace_ready
        super().__init__(
            **{
                "activities": _with_allocator(groups.kinds, profile_memory),
                "schedule": _ours(schedule) if schedule is not None else None,
                "sources": sources,
                **counters_of(experimental_config),
                **options,
            }
        )

    @property
    def step_num(self) -> int:
        """Number of the step that runs, from 0."""
        return self._step

    @property
    def current_action(self) -> Action:
        """What the session does in this step; NONE: not started."""
        if self.state in ("idle", "stopped"):
            return Action.NONE
        return self._schedule(self._step) if self._schedule is not None else Action.RECORD

    def start(self) -> TorchProfile:
        """Begin; see ``cuptiprof.profile.start``."""
        if self._adds_cycles and self.state == "stopped":
            self._keep_cycle()
        super().start()
        self._next_cycle()
        self._observe()
        return self

    def stop(self) -> Result:
        """End; see ``cuptiprof.profile.stop``."""
        if self._observer is not None:
            self._observer.stop()
        super().stop()
        return self.result()

    def step(self) -> None:
        """The end of a training step; see ``cuptiprof.profile.step``."""
        saves = self.current_action is Action.RECORD_AND_SAVE
        if saves and self._observer is not None:
            self._observer.stop()
        super().step()
        if saves:
            if self._adds_cycles:
                self._keep_cycle()
            self._next_cycle()
        self._observe()

    def result(self) -> Result:
        """What was collected, with the metadata that was added; see ``cuptiprof.profile.result``."""
        result = super().result()
        told = {key: 1 for key, value in self._given.items() if value}
        result.metadata["torch_profiler"] = {**self._given}
        result.metadata["trace_members"] = {**told, "trace_id": self._trace_id, **self._user_metadata}
        self._tell_missing_shapes(result)
        return result

    def key_averages(
        self, group_by_input_shape: bool = False, group_by_stack_n: int = 0, group_by_overload_name: bool = False
    ) -> KeyAverages:
        """torch.profiler's averages, with ``acc_events`` of all cycles; see :meth:`cuptiprof.Result.key_averages`.

        Raises:
            SessionError: not finished, or ``group_by_overload_name``.
        """
        if group_by_overload_name:
            raise SessionError(
                "group_by_overload_name: overloads are not recorded",
                hint="record_shapes=True and group_by_input_shape=True tell most of them apart",
            )
        cycles = [cycle.key_averages(group_by_input_shape, group_by_stack_n) for cycle in self._cycles()]
        return KeyAverages.of_cycles(cycles) if self._adds_cycles else cycles[-1]

    def events(self) -> Any:
        """torch's own EventList of FunctionEvents: one Python object an event; with ``acc_events`` the last cycle's, then those before."""
        *earlier, last = self._cycles()
        out = function_events(last)
        for cycle in earlier:
            out.extend(function_events(cycle))
        return out

    def export_chrome_trace(self, path: str | os.PathLike[str], use_python_export: bool = False) -> None:
        """``result().export_chrome_trace(path)``; `use_python_export` chooses between torch's writers and is of no effect."""
        del use_python_export
        self.result().export_chrome_trace(path)

    def export_stacks(self, path: str | os.PathLike[str], metric: str = "self_cpu_time_total") -> None:
        """``result().export_stacks(path, metric)``."""
        self.result().export_stacks(path, metric)

    def export_memory_timeline(self, path: str | os.PathLike[str], device: str | None = None) -> None:
        """A page (.html) or torch's two lists (.json, .json.gz) of a device's memory over time, with profile_memory=True.

        Without categories, which torch guesses from a graph that is not kept here: all bytes are in its last, unknown.

        Args:
            device: "cuda:0" or "cuda"; default: the first.

        Raises:
            SessionError: not finished, or no such device's name. ResultError: another suffix, no history of that device, or it cannot
            be written.
        """
        export_memory_timeline(self.result(), path, _device_index(device))

    def add_metadata(self, key: str, value: str) -> None:
        """A text for the trace file, beside ``traceEvents``."""
        self._user_metadata[str(key)] = str(value)

    def add_metadata_json(self, key: str, value: str) -> None:
        """JSON for the trace file, beside ``traceEvents``.

        Raises:
            SessionError: it is none.
        """
        try:
            self._user_metadata[str(key)] = json.loads(value)
        except (ValueError, TypeError, RecursionError) as e:
            raise SessionError(
                f"add_metadata_json({key!r}): not JSON ({e})", hint="add_metadata takes any text"
            ) from None

    preset_metadata_json = add_metadata_json

    def set_custom_trace_id_callback(self, callback: Callable[[], str]) -> None:
        """Names the cycles that begin from now on."""
        self._name_cycle = callback

    def get_trace_id(self) -> str | None:
        """Name of the cycle; None before the first."""
        return self._trace_id

    def toggle_collection_dynamic(self, enable: bool, activities: Iterable[Any]) -> None:
        """Pause or resume the whole session.

        Raises:
            SessionError: for a part of it, CPU or CUDA alone.
        """
        groups = parse_groups(activities)
        if not groups.cpu or groups.kinds == []:
            raise SessionError(
                "toggle_collection_dynamic of one activity: a session pauses as a whole",
                hint="give CPU and CUDA together, or prof.pause() and prof.resume()",
            )
        if enable and self.state == "paused":
            self.resume()
        elif not enable and self.state == "running":
            self.pause()

    def _tell_missing_shapes(self, result: Result) -> None:
        """Once: shapes were asked for, operators came, and none has any."""
        asked = [name for name in ("record_shapes", "with_flops") if self._given[name]]
        if asked and not self._told and len(result.operators) and not result.operators.codes("shapes").any():
            self._told = True
            text = f"{', '.join(asked)}: shapes of operators were not recorded; tables have no Input Shapes, and no FLOPs by formula"
            warn_caller(OperatorsWarning(text))

    def _cycles(self) -> list[Result]:
        """Those that are added up, the last one last."""
        last = self.result()
        return [*(cycle for cycle in self._earlier if cycle is not last), last]

    def _keep_cycle(self) -> None:
        self._earlier = self._cycles()

    def _next_cycle(self) -> None:
        self._trace_id = str(self._name_cycle())

    def _observe(self) -> None:
        if self._observer is not None and self.current_action in _RECORDING:
            self._observer.start()


def _ours(schedule: Callable[[int], Any]) -> Schedule:
    """A schedule whose actions are torch's or ours, by their names."""

    def at(step: int) -> Action:
        action = schedule(step)
        name = str(getattr(action, "name", ""))
        if name not in Action.__members__:
            raise SessionError(
                f"schedule({step}) gave {action!r}",
                hint=f"ProfilerAction.{', .'.join(Action.__members__)}",
            )
        return Action[name]

    return at


def _with_allocator(kinds: list[str] | None, profile_memory: bool) -> list[str] | None:
    """Ours, with the history of torch's caching allocator."""
    return [*(DEFAULT if kinds is None else kinds), ALLOCATOR] if profile_memory else kinds


_CUDA_DEVICE = re.compile(r"cuda(?::([0-9]{1,4}))?")


def _device_index(name: str | None) -> int | None:
    """Of "cuda:1"; None: the first."""
    if name is None:
        return None
    match = _CUDA_DEVICE.fullmatch(str(name))
    if match is None:
        raise SessionError(f"export_memory_timeline(device={name!r}): not a GPU", hint='device="cuda:0"')
    return int(match[1]) if match[1] else None
