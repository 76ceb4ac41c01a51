"""While a session runs: whoever gives work to another thread inside a region gives the region with it.

Three ways are followed: ``threading.Thread.start``, ``ThreadPoolExecutor.submit`` (and with it asyncio's
``run_in_executor`` and ``to_thread``), and calls of torch's autograd engine, whose own threads work for the caller. Anything else is
for ``cuptiprof.carry``. Threads of a pool serve everybody: they do not belong to the region they happened to be started in.
"""

from __future__ import annotations

import functools
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from types import ModuleType
from typing import Any

from cuptiprof._core import RegionToken, _adopt, _backward_begins, _backward_ends, _hand_over, _release
from cuptiprof.regions.when_imported import WhenImported

_TOKEN = "_cuptiprof_region"
_POOLS = {"concurrent.futures.thread": "_worker", "multiprocessing.pool": "worker"}
"""Where the functions are that threads of a pool run."""
_ENGINE = "torch.autograd.variable"

Undo = list[Callable[[], None]]


class Following:
    """What is handed over is followed inside of it."""

    def __init__(self) -> None:
        self._undo: Undo = []

    def __enter__(self) -> Following:
        _replace(threading.Thread, "start", _starting, self._undo)
        _replace(threading.Thread, "_bootstrap_inner", _started, self._undo)
        _replace(ThreadPoolExecutor, "submit", _submitting, self._undo)
        if _ENGINE in sys.modules:
            _follow_engine(sys.modules[_ENGINE], self._undo)
        else:
            waiting = WhenImported(_ENGINE, lambda module: _follow_engine(module, self._undo))
            self._undo.append(waiting.remove)
            waiting.wait()
        return self

    def __exit__(self, *error: object) -> None:
        """Leave everything as it was, but for what others have wrapped since: ours then passes calls on."""
        for undo in reversed(self._undo):  # each may be called twice: Ctrl-C in between loses none
            undo()
        self._undo.clear()


def _replace(owner: type, name: str, make: Callable[[Callable[..., Any]], Callable[..., Any]], undo: Undo) -> None:
    original = owner.__dict__.get(name)
    if original is None:
        return
    ours = functools.wraps(original)(make(original))

    def put_back() -> None:
        if owner.__dict__.get(name) is ours:
            setattr(owner, name, original)

    undo.append(put_back)  # before there is something to undo: Ctrl-C may come in between
    setattr(owner, name, ours)


def _starting(original: Callable[..., None]) -> Callable[..., None]:
    def start(self: threading.Thread) -> None:
        token = None if _serves_a_pool(self) else _hand_over()
        if token is not None:
            self.__dict__[_TOKEN] = token
        try:
            original(self)
        except BaseException:
            self.__dict__.pop(_TOKEN, None)
            raise

    return start


def _started(original: Callable[..., None]) -> Callable[..., None]:
    def _bootstrap_inner(self: threading.Thread) -> None:
        token = self.__dict__.pop(_TOKEN, None)
        if token is not None:
            _adopt(token)  # until the thread ends
        original(self)

    return _bootstrap_inner


def _serves_a_pool(thread: threading.Thread) -> bool:
    target = getattr(thread, "_target", None)
    return getattr(target, "__name__", None) == _POOLS.get(getattr(target, "__module__", ""), "")


def _submitting(original: Callable[..., Future[Any]]) -> Callable[..., Future[Any]]:
    def submit(self: ThreadPoolExecutor, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        token = _hand_over()
        if token is None:
            return original(self, fn, *args, **kwargs)
        return original(self, _run_inside, token, fn, *args, **kwargs)

    return submit


def _run_inside(token: RegionToken, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    adopted = _adopt(token)
    try:
        return fn(*args, **kwargs)
    finally:
        _release(adopted)


def _follow_engine(variable: ModuleType, undo: Undo) -> None:
    """Replace the one engine object that torch calls by one that says when it is called."""
    owner: Any = variable.Variable
    engine = owner._execution_engine
    base: Any = type(engine)

    class Following(base):  # type: ignore[misc]
        def run_backward(self, *args: Any, **kwargs: Any) -> Any:
            _backward_begins(of_torch=True)
            try:
                return super().run_backward(*args, **kwargs)
            finally:
                _backward_ends()

    ours = Following()
    owner._execution_engine = ours

    def put_back() -> None:
        if owner._execution_engine is ours:
            owner._execution_engine = engine

    undo.append(put_back)
