"""``carry``: work that goes to another thread takes its region along."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, TypeVar, overload

from cuptiprof._core import RegionToken, _adopt, _hand_over, _release, _task
from cuptiprof.regions.decorating import decorated

F = TypeVar("F", bound=Callable[..., Any])


class Carried:
    """The region that was open where :func:`carry` was called: ``with`` it, on any thread and in any task, several at once too."""

    def __init__(self, token: RegionToken | None) -> None:
        self._token = token
        self._ids: dict[tuple[int, int], list[int]] = {}  # by thread and task: each leaves what it has entered

    def __enter__(self) -> Carried:
        if self._token is not None:
            self._ids.setdefault((threading.get_ident(), _task()), []).append(_adopt(self._token))
        return self

    def __exit__(self, *error: object) -> None:
        here = (threading.get_ident(), _task())
        if here not in self._ids:  # entered before anything was carried, or elsewhere
            return
        ids = self._ids[here]
        _release(ids.pop())
        if not ids:
            del self._ids[here]

    def __repr__(self) -> str:
        return f"<cuptiprof.carry: {'a region' if self._token is not None else 'no region'}>"


@overload
def carry() -> Carried: ...


@overload
def carry(function: F) -> F: ...


def carry(function: Callable[..., Any] | None = None) -> Any:
    """Take the region open here along to another thread: one that is older than the region, a queue, a pool of your own.

    With a function, the function whose calls, wherever they are made, work for the region that is open now::

        pool.submit(cuptiprof.carry(job), batch)

    Without, something to enter with ``with`` where the work is done::

        queue.put((cuptiprof.carry(), job))
        ...  # on the thread that takes it out
        with carried:
            job()

    Regions opened inside nest under it. Once the region is left, the nearest one around it that is still open takes its place.
    Where no region is open, or nothing is collected, nothing is carried. It costs a few hundred ns, and is good for the session
    it was made in; of one session the last 65,536 are remembered.

    Raises:
        TypeError: not a function, or a generator, whose body would run after its call.
    """
    carried = Carried(_hand_over())
    return carried if function is None else decorated(function, lambda: carried, "carry()")
