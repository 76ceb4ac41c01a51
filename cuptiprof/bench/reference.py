"""Whether a function gives what a reference gives: before it is measured, and never while."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from cuptiprof.errors import BenchError

# Relative and absolute, as torch.testing.assert_close has them; of a type that is not here: those of float32.
_TOLERANCES = {"float16": (1e-3, 1e-5), "bfloat16": (1.6e-2, 1e-5), "float64": (1e-7, 1e-7), "complex128": (1e-7, 1e-7)}
_USUAL = (1.3e-6, 1e-5)


def check_result(
    name: str, function: Callable[[], object], check: Any, call_reference: Callable[[Any], object]
) -> None:
    """Call the function once, and compare.

    Args:
        check: what comes out right: a value, or a function of the same arguments.
        call_reference: calls such a function with them.

    Raises:
        BenchError: the results are not the same within the tolerance of their element type, or not comparable.
        Exception: whatever one of the functions raises.
    """
    expected = call_reference(check) if callable(check) else check
    if why := difference(function(), expected):
        raise BenchError(f"{name!r} does not give what its reference gives: {why}")


def difference(actual: Any, expected: Any, where: str = "") -> str:
    """What differs first between two results; empty when they are the same within the tolerance of their element type.

    Sequences and mappings are compared item by item.
    """
    if isinstance(expected, Mapping) and isinstance(actual, Mapping):
        if actual.keys() != expected.keys():
            return f"keys {sorted(map(str, actual))} where {sorted(map(str, expected))} were expected"
        items: Any = ((actual[k], expected[k], f"{where}[{k!r}]") for k in expected)
        return next((why for a, e, at in items if (why := difference(a, e, at))), "")
    if isinstance(expected, (list, tuple)) and isinstance(actual, (list, tuple)):
        if len(actual) != len(expected):
            return f"{len(actual)} values where {len(expected)} were expected{_at(where)}"
        items = ((a, e, f"{where}[{i}]") for i, (a, e) in enumerate(zip(actual, expected, strict=True)))
        return next((why for a, e, at in items if (why := difference(a, e, at))), "")
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(expected, torch.Tensor) and isinstance(actual, torch.Tensor):
        try:
            torch.testing.assert_close(actual, expected, equal_nan=True)
        except AssertionError as e:
            return _one_line(e) + _at(where)
        return ""
    if hasattr(expected, "shape") or hasattr(actual, "shape") or isinstance(expected, (float, complex)):
        return _of_arrays(actual, expected, where)
    return "" if actual == expected else f"{actual!r:.80} where {expected!r:.80} was expected{_at(where)}"


def _of_arrays(actual: Any, expected: Any, where: str) -> str:
    """NumPy's, and what gives itself as one (``get()`` of CuPy's)."""
    a, e = (np.asarray(x.get() if hasattr(x, "get") else x) for x in (actual, expected))
    if a.shape != e.shape or a.dtype != e.dtype:
        return f"{a.dtype} of shape {a.shape} where {e.dtype} of shape {e.shape} was expected{_at(where)}"
    if not np.issubdtype(e.dtype, np.inexact):
        return "" if np.array_equal(a, e) else f"{int((a != e).sum())} of {e.size} elements differ{_at(where)}"
    relative, absolute = _TOLERANCES.get(e.dtype.name, _USUAL)
    try:
        np.testing.assert_allclose(a, e, rtol=relative, atol=absolute)
    except AssertionError as error:
        return _one_line(error) + _at(where)
    return ""


def _one_line(error: AssertionError) -> str:
    return "; ".join(line.strip() for line in str(error).splitlines() if line.strip())[:300]


def _at(where: str) -> str:
    return f", at {where}" if where else ""
