"""``region``: whose kernels are they? ``current_region`` and ``inherit``: work that is handed to another thread.

The type itself is native (``_core.region``); here is what it needs from Python: how a function is decorated.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ContextDecorator
from typing import Any, TypeVar

from cuptiprof._core import RegionToken, _adopt, _hand_over, _region_hooks, _release, region
from cuptiprof.regions.decorating import decorated
from cuptiprof.regions.metadata import encode_metadata, name_of

__all__ = ["current_region", "inherit", "region"]

F = TypeVar("F", bound=Callable[..., Any])


def decorate(again: region, function: F) -> F:
    """Wrap `function` so that each call runs inside a fresh region like `again`."""
    return decorated(function, again._again, "a region")


def current_region() -> RegionToken | None:
    """The innermost region open here (this thread, this asyncio task), to be handed to ``inherit`` on another thread.

    None when no region is open, or nothing is being collected. A token costs a few hundred ns, and is good for the
    session it was taken in; of one session the last 65,536 are remembered.
    """
    return _hand_over()


class inherit(ContextDecorator):
    """Work launched inside belongs to the region of a token, as if it were launched where the token was taken.

    A context manager and a decorator, for any thread and task::

        token = cuptiprof.current_region()
        queue.put((token, job))
        ...  # on the thread that takes it out
        with cuptiprof.inherit(token):
            job()

    Regions opened inside nest under it. Once the token's region is left, the nearest region around it that is still open
    takes its place. ``inherit(None)`` does nothing.
    """

    def __init__(self, token: RegionToken | None) -> None:
        self._token = token
        self._ids: list[int] = []

    def _recreate_cm(self) -> inherit:
        return inherit(self._token)  # each call of a decorated function on its own

    def __enter__(self) -> inherit:
        self._ids.append(_adopt(self._token) if self._token is not None else 0)
        return self

    def __exit__(self, *error: object) -> None:
        _release(self._ids.pop())


_region_hooks(encode_metadata, decorate, name_of)
