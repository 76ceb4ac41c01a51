"""What a session follows of PyTorch beside the launches: operators, modules, the caching allocator, collectives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cuptiprof.session.allocator_history import AllocatorHistory, TakenHistory
from cuptiprof.session.collective_calls import CollectiveCall, CollectiveCalls
from cuptiprof.session.held import Held
from cuptiprof.session.sources import FULL
from cuptiprof.session.torch_events import TakenEvents
from cuptiprof.session.torch_modules import TorchModules
from cuptiprof.session.torch_operators import FollowingOperators

if TYPE_CHECKING:
    from cuptiprof.session.arguments import Arguments


@dataclass
class TakenTorch:
    """What PyTorch told in one cycle; None: it was not asked."""

    allocator: TakenHistory | None = None
    collectives: tuple[list[CollectiveCall], int] | None = None
    """The calls, and how many more there was no room for."""
    events: TakenEvents | None = None
    """What torch's own profiler told of operators, where these could not be observed."""
    operator_rows: bool = False
    """The level of operators is "full": they have rows of their own."""
    modules: Mapping[int, str] | None = None
    """Paths by number."""


class FollowingTorch:
    """The followers of one session; those that it does not want are not there."""

    def __init__(self, arguments: Arguments) -> None:
        sources = arguments.sources
        self._operators = (
            FollowingOperators(sources.shapes, or_events=arguments.names_operators) if sources.operators else None
        )
        self._operator_rows = sources.operators == FULL
        self._modules = TorchModules() if sources.modules else None
        self._allocator = (
            AllocatorHistory(arguments.budget, with_frames=sources.frames != 0) if arguments.allocator else None
        )
        self._collectives = CollectiveCalls(arguments.budget) if arguments.collectives else None

    def before_start(self, held: Held) -> None:
        """What the first launch wants to know; the native session is there."""
        for follower in (self._operators, self._modules):
            if follower is not None:
                held.enter(follower)

    def after_start(self, held: Held) -> None:
        """What is told by calls of PyTorch's, joined by time, on the running device; names."""
        if self._modules is not None:
            self._modules.started()
        for follower in (self._allocator, self._collectives):
            if follower is not None:
                held.enter(follower)

    @property
    def note(self) -> str:
        """What could not be followed; empty: nothing."""
        return self._operators.note if self._operators is not None else ""

    def record(self, on: bool) -> None:
        """The session records from here on, or does not."""
        if self._operators is not None:
            self._operators.record(on)

    def step(self) -> None:
        """The end of a training step."""
        if self._modules is not None:
            self._modules.step()

    def forget(self) -> None:
        """What was told until now belongs to no cycle."""
        if self._operators is not None:
            self._operators.forget()
        if self._allocator is not None:
            self._allocator.forget()
        if self._collectives is not None:
            self._collectives.take()

    def so_far(self) -> TakenTorch:
        """What can be told while the cycle goes on: names of modules. The rest is told once, at its end."""
        return TakenTorch(modules=self._modules.names() if self._modules is not None else None)

    def take_on_device(self) -> TakenTorch:
        """At the end of a cycle, while the device is there."""
        return TakenTorch(
            allocator=self._allocator.take() if self._allocator is not None else None,
            events=self._operators.take() if self._operators is not None else None,
            operator_rows=self._operator_rows,
        )

    def take_rest(self, taken: TakenTorch) -> None:
        """The rest of what belongs to the cycle; it can be called again."""
        if taken.collectives is None and self._collectives is not None:
            taken.collectives = self._collectives.take()
        if self._modules is not None:
            taken.modules = self._modules.names()
