"""What a program knows of each of its launches, noted when it is made: by the dispatch, the engine and the program itself."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any

import torch

import cuptiprof
from cuptiprof.sim.pytorch.dispatch_mode import TorchSimulation
from cuptiprof.sim.pytorch.launches import Copy, KernelWork, Set, Work
from cuptiprof.sim.sim_device import SimDevice
from torch_programs.backend import Backend
from torch_programs.nodes import node_module

_TASK: ContextVar[str] = ContextVar("region of the task", default="")
_CALLER = "torch_programs.caller"  # torch gives it to the threads that work for a backward


@dataclass(frozen=True)
class Launch:
    """One kernel, copy or set.

    Attributes:
        operator: that reached the device: "aten::mm".
        node: of autograd's graph that the engine evaluates; "": none.
        backward: the engine called.
        module: whose forward runs, or ran when the node was made; "": of none.
        of_node: the module is that of the node.
    """

    thread: int
    table: str
    operator: str
    node: str
    backward: bool
    module: str
    of_node: bool
    region: str
    step: int

    def but(self, name: str, value: Any) -> Launch:
        """The same, but for one of them."""
        return replace(self, **{name: value})


@dataclass(frozen=True)
class _Caller:
    """Of backward."""

    thread: int
    region: str


class _Here(threading.local):
    def __init__(self) -> None:
        self.regions: list[str] = []
        self.modules: list[tuple[str, Any]] = []  # and the node that was evaluated when it was called
        self.inherited = ""  # region this thread was started in


class Truth:
    """One program's. `rows` are in the order in which each thread launched.

    Attributes:
        marks: torch's profiler shall hear of each launch, as an empty scope "launch N" right after it.
        kept: models that shall live as long as the session, although their threads have ended.
    """

    def __init__(self) -> None:
        self.rows: list[Launch] = []
        self.marks = False
        self.kept: list[Any] = []
        self._steps = 0
        self._here = _Here()
        self._lock = threading.Lock()  # a launch and its note are one thing, and so is a step
        self.session: Any = None

    @contextmanager
    def region(self, name: str) -> Iterator[None]:
        with cuptiprof.region(name):
            self._here.regions.append(name)
            try:
                yield
            finally:
                self._here.regions.pop()

    @contextmanager
    def backward(self) -> Iterator[None]:
        """Around each call of the engine."""
        tls = torch._C._is_key_in_tls(_CALLER)
        if tls:  # called by the engine itself: it works for the first caller
            yield
            return
        torch._C._stash_obj_in_tls(_CALLER, _Caller(threading.get_ident(), self.open_region()))
        try:
            yield
        finally:
            torch._C._remove_obj_from_tls(_CALLER)

    def step(self) -> None:
        with self._lock:
            self.session.step()
            self._steps += 1

    @contextmanager
    def task_region(self, name: str) -> Iterator[None]:
        """Of an asyncio task: others run on this thread in between."""
        with cuptiprof.region(name):
            around = _TASK.get()
            token = _TASK.set(f"{around}/{name}" if around else name)
            try:
                yield
            finally:
                _TASK.reset(token)

    def thread(self, target: Callable[..., Any], *args: Any) -> threading.Thread:
        """One that works for the region that is open here."""
        return threading.Thread(target=self.working_for(self.open_region(), target), args=args)

    def working_for(self, region: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def work(*args: Any) -> Any:
            self._here.inherited = region
            try:
                return function(*args)
            finally:
                self._here.inherited = ""

        return work

    def open_region(self) -> str:
        around = self._here.inherited or _TASK.get()
        if torch._C._is_key_in_tls(_CALLER):
            caller = torch._C._get_obj_in_tls(_CALLER)
            if caller.thread != threading.get_ident():
                around = caller.region
        return "/".join([*([around] if around else []), *self._here.regions])

    @contextmanager
    def module(self, path: str) -> Iterator[None]:
        """Its forward runs here."""
        self._here.modules.append((path, torch._C._current_autograd_node()))
        try:
            yield
        finally:
            self._here.modules.pop()

    def open_module(self) -> tuple[str, bool]:
        """Whose forward runs here, unless the engine has begun with a node inside of it; and whether that is so."""
        node = torch._C._current_autograd_node()
        if self._here.modules and (node is None or self._here.modules[-1][1] is node):
            return self._here.modules[-1][0], False
        return ("", False) if node is None else (node_module(node), True)

    def launched(self, tables: list[str], operator: str, launch: Callable[[], None]) -> None:
        node = torch._C._current_autograd_node()
        with self._lock:
            row = (threading.get_native_id(), operator, "" if node is None else node.name(),
                   torch._C._current_graph_task_id() != -1, *self.open_module(), self.open_region(), self._steps + 1)  # fmt: skip
            first = len(self.rows)
            self.rows += [Launch(row[0], table, *row[1:]) for table in tables]
            launch()
        if self.marks:
            for number in range(first, first + len(tables)):
                with torch._C._profiler._RecordFunctionFast(f"launch {number}"):
                    pass

    def take(self) -> list[Launch]:
        """The rows since the last time."""
        with self._lock:
            rows, self.rows = self.rows, []
        return rows

    def finished(self) -> list[Launch]:
        """The rows; steps are 0 where none was marked."""
        if self._steps:
            return self.rows
        return [row.but("step", 0) for row in self.rows]


_TABLES = {KernelWork: "kernels", Copy: "memcpys", Set: "memsets"}


class NotedSimulation(TorchSimulation):
    """Launches as the simulated device does for any program, and has each noted by the truth of the program that runs."""

    def __init__(self) -> None:
        super().__init__(SimDevice(), "H100")
        self.truth: Truth | None = None
        self.backend = Backend(self)
        self.backend.register()

    def prepare(self, work: list[Work]) -> Any:
        launch = super().prepare(work)
        tables = [_TABLES[type(w)] for w in work if type(w) in _TABLES]
        if launch is None:
            return None

        def noted() -> None:
            truth, operator = self.truth, self.backend.current.operator
            if truth is None:
                launch()
            else:
                truth.launched(tables, operator, launch)

        return noted
