"""``region``: whose kernels are they?

The type itself is native (``_core.region``); here is what it needs from Python: how metadata becomes JSON and how a
function is decorated.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, TypeVar

from cuptiprof._core import _region_hooks, region
from cuptiprof.decorating import decorated

__all__ = ["region"]

F = TypeVar("F", bound=Callable[..., Any])


def encode_metadata(metadata: dict[str, Any]) -> str:
    """The keywords of a region as a JSON object, without ``flops`` and ``bytes``, which have columns; "" if none left.

    Numbers of other libraries (NumPy, torch scalars) are written as Python numbers.
    """
    rest = {k: v for k, v in metadata.items() if k not in ("flops", "bytes")}
    if not rest:
        return ""
    try:
        return json.dumps(rest, default=_plain)
    except Exception:  # an annotation never raises into the program: what cannot be written alone is left out
        return json.dumps({k: text for k, v in rest.items() if (text := _written(v)) is not None}, default=str)


def _plain(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else str(value)


def _written(value: Any) -> Any:
    try:
        return json.loads(json.dumps(value, default=_plain))
    except Exception:
        return None


def decorate(again: region, function: F) -> F:
    """Wrap `function` so that each call runs inside a fresh region like `again`."""
    return decorated(function, again._again, "a region")


_region_hooks(encode_metadata, decorate)
