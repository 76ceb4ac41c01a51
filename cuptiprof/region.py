"""``region``: whose kernels are they?

The type itself is native (``_core.region``); here is what it needs from Python: how metadata becomes JSON and how a
function is decorated.
"""

from __future__ import annotations

import functools
import inspect
import json
from collections.abc import Callable
from typing import Any, TypeVar

from cuptiprof._core import _region_hooks, region

__all__ = ["region"]

F = TypeVar("F", bound=Callable[..., Any])


def encode_metadata(metadata: dict[str, Any]) -> str:
    """The keywords of a region as a JSON object, without ``flops`` and ``bytes``, which have columns; "" if none left.

    Numbers of other libraries (NumPy, torch scalars) are written as Python numbers.
    """
    rest = {k: v for k, v in metadata.items() if k not in ("flops", "bytes")}
    if not rest:
        return ""
    return json.dumps(rest, default=lambda v: v.item() if hasattr(v, "item") else str(v))


def decorate(again: region, function: F) -> F:
    """Wrap `function` so that each call runs inside a fresh region like `again`."""
    if not callable(function):
        raise TypeError(f"a region decorates functions, not {type(function).__name__}")
    fresh = again._again
    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def in_region_async(*args: Any, **kwargs: Any) -> Any:
            with fresh():
                return await function(*args, **kwargs)

        return in_region_async  # type: ignore[return-value]
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise TypeError(
            f"{function.__qualname__} is a generator: its body runs in pieces, in its callers' regions. "
            "Use `with region(...)` inside it"
        )

    @functools.wraps(function)
    def in_region(*args: Any, **kwargs: Any) -> Any:
        with fresh():
            return function(*args, **kwargs)

    return in_region  # type: ignore[return-value]


_region_hooks(encode_metadata, decorate)
