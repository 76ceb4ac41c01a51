"""Functions wrapped in a context manager: plain ones and async ones; generators are refused."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


def decorated(function: F, enter: Callable[[], AbstractContextManager[Any]], what: str) -> F:
    """`function`, each call of which runs inside ``with enter()``.

    Raises:
        TypeError: not a function, or a generator, whose body would run after the block was left.
    """
    if not callable(function):
        raise TypeError(f"{what} decorates functions, not {type(function).__name__}")
    if _any_of(function, inspect.isgeneratorfunction, inspect.isasyncgenfunction):
        name = getattr(function, "__qualname__", type(function).__name__)
        raise TypeError(
            f"{name} is a generator: its body runs in pieces, between those of its callers. "
            f"Decorate a function that goes through all of it, or use a `with` block inside it to enter {what}"
        )
    if _any_of(function, inspect.iscoroutinefunction):

        @functools.wraps(function)
        async def inside_async(*args: Any, **kwargs: Any) -> Any:
            with enter():
                return await function(*args, **kwargs)

        return inside_async  # type: ignore[return-value]

    @functools.wraps(function)
    def inside(*args: Any, **kwargs: Any) -> Any:
        with enter():
            return function(*args, **kwargs)

    return inside  # type: ignore[return-value]


def _any_of(function: Any, *kinds: Callable[[Any], bool]) -> bool:
    """Of the function itself, what a ``functools.partial`` holds, or an object's ``__call__``."""
    while isinstance(function, functools.partial):
        function = function.func
    call = inspect.getattr_static(type(function), "__call__", None)
    return any(kind(f) for kind in kinds for f in (function, call))
