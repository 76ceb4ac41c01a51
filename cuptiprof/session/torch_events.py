"""What PyTorch's own profiler of the CPU says of operators: for a torch whose operators cannot be observed (``torch_operators``).

It is run by us while the session records, with the kinds of the CPU alone, so that CUPTI stays the session's. It costs twice what
observing does, and knows neither modules nor lines.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from cuptiprof.session.unix_times import ClockPair, clock_reading


class TorchEvent(NamedTuple):
    """An operator, a node of backward or a ``record_function`` that ended.

    Attributes:
        start, end: Unix time, ns.
        thread: system thread ID.
        torch_thread, forward_thread: torch's numbers of its thread, and of that on which the node was made (0: it is no node).
        sequence: -1: it has none.
        scope: at::RecordScope.
        shapes, dtypes: of the inputs; empty: not asked for.
    """

    name: str
    start: int
    end: int
    thread: int
    torch_thread: int
    forward_thread: int
    sequence: int
    scope: int
    shapes: list[Any]
    dtypes: list[Any]


@dataclass(frozen=True)
class TakenEvents:
    """Of one cycle; `clocks`: readings at its beginning and end; `with_shapes`: those of inputs were asked for."""

    events: list[TorchEvent]
    clocks: tuple[ClockPair, ClockPair]
    with_shapes: bool


class TorchEvents:
    """torch's profiler while :meth:`record` says so.

    Where the program uses torch.profiler itself, ours gives way to it for the rest of the session.

    Args:
        torch: the program's.
        shapes: of inputs are wanted.
    """

    def __init__(self, torch: Any, shapes: bool) -> None:
        self._torch, self._shapes = torch, shapes
        self._profile: Any = torch.autograd.profiler.profile
        self._running: Any = None
        self._events: list[TorchEvent] = []
        self._begin = clock_reading()
        self._original: Callable[..., Any] | None = None
        self._ours: Callable[..., Any] | None = None
        self.note = ""
        """Why events are missing; empty: they are not."""

    def watch(self) -> None:
        """From here on the program's own use is seen, until :meth:`close`."""
        original = self._profile._prepare_trace

        def prepare_trace(profiler: Any, *args: Any, **kwargs: Any) -> Any:
            if self._running is not None and profiler is not self._running:
                self._leave_off()
                self.note = "the program used torch.profiler: from then on operators are missing"
            return original(profiler, *args, **kwargs)

        self._original, self._ours = original, prepare_trace
        self._profile._prepare_trace = prepare_trace

    def record(self, on: bool) -> None:
        """Begin, or leave off."""
        if not on:
            self._leave_off()
        elif self._running is None and not self.note:
            self._go_on()

    def forget(self) -> None:
        """What came until now belongs to no cycle."""
        self._leave_off(keep=False)
        self._events = []
        self._begin = clock_reading()

    def take(self) -> TakenEvents:
        """What came since the last :meth:`forget`; torch's profiler is off then. May be called again for the same."""
        self._leave_off()
        return TakenEvents(list(self._events), (self._begin, clock_reading()), self._shapes)

    def close(self) -> None:
        """Leave torch as it was; it can be called again."""
        self._leave_off(keep=False)
        if self._original is not None and vars(self._profile).get("_prepare_trace") is self._ours:
            self._profile._prepare_trace = self._original
        self._original = None

    def _go_on(self) -> None:
        if self._torch._C._autograd._profiler_enabled():
            self.note = "torch.profiler runs already, and no second one can: operators are missing"
            return
        profiler = self._new()
        self._running = profiler
        try:
            profiler.__enter__()
        except Exception as e:  # whatever an unknown torch says: the program goes on
            self._running = None
            self.note = f"torch's profiler could not be started either: {_first_line(e)}"

    def _new(self) -> Any:
        more: dict[str, Any] = {"use_kineto": True, "record_shapes": self._shapes}
        try:
            every_thread = self._torch._C._profiler._ExperimentalConfig(profile_all_threads=True)
            return self._profile(**more, experimental_config=every_thread)
        except (TypeError, AttributeError):  # an older torch: this thread, and those that work for it
            return self._profile(**more)

    def _leave_off(self, keep: bool = True) -> None:
        profiler, self._running = self._running, None
        if profiler is None:
            return
        try:
            profiler.__exit__(None, None, None)
            if keep:
                self._events += events_of(profiler.kineto_results.events())
        except Exception as e:
            self.note = f"torch's profiler gave no events: {_first_line(e)}"


def events_of(told: Any) -> list[TorchEvent]:
    """Those of the host that are operators or scopes of the user's."""
    return [
        TorchEvent(
            e.name(),
            e.start_ns(),
            e.start_ns() + e.duration_ns(),
            e.device_resource_id() & 0xFFFFFFFF,
            e.start_thread_id(),
            e.fwd_thread_id(),
            e.sequence_nr(),
            e.scope(),
            e.shapes(),
            e.dtypes(),
        )
        for e in told
        if e.device_type().name == "CPU" and e.start_thread_id() != 0
    ]


def _first_line(e: Exception) -> str:
    return (str(e).splitlines() or [type(e).__name__])[0]
