"""``region``: whose kernels are they?

The type itself is native (``_core.region``); here is what it needs from Python: how a function is decorated.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from cuptiprof._core import _region_hooks, region
from cuptiprof.regions.decorating import decorated
from cuptiprof.regions.metadata import encode_metadata, name_of

__all__ = ["region"]

F = TypeVar("F", bound=Callable[..., Any])


def decorate(again: region, function: F) -> F:
    """Wrap `function` so that each call runs inside a fresh region like `again`."""
    return decorated(function, again._again, "a region")


_region_hooks(encode_metadata, decorate, name_of)
